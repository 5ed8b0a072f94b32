"""Prints the features of a workspace crate, one a line, without `default`.

    python3 ci/features.py pinfeed
"""

import json
import subprocess
import sys

command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
(package,) = (p for p in metadata["packages"] if p["name"] == sys.argv[1])
print(*sorted(package["features"].keys() - {"default"}), sep="\n")
