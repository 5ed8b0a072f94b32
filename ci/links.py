"""Checks the relative links of the Markdown files that git knows: each must
lead to a file or folder, and each `#part` to a heading.
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

# Untracked files too, but not ignored ones: the check runs before the commit.
LIST = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]


def prose(path):
    """The file without its code blocks and comments."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    return re.sub(r"<!--.*?-->", "", text, flags=re.S)


def anchors(path):
    """The anchors GitHub makes of the headings."""
    headings = re.findall(r"^#+ +(.*)$", prose(path), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def broken(path):
    """The links of one file that lead nowhere."""
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, part = unquote(link).partition("#")
        target = path.parent / file if file else path
        if not target.exists() or (part and target.suffix == ".md" and part not in anchors(target)):
            yield link


files = subprocess.run(LIST, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
found = [f"{f}: {link}" for f in files if Path(f).exists() for link in broken(Path(f))]
print(*found, sep="\n", end="\n" if found else "")
print(f"links: {len(files)} files, {len(found)} broken links")
sys.exit(bool(found))
