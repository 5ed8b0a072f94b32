#!/usr/bin/env bash
# All tests, by the command that README.md gives.
set -euo pipefail
cd "$(dirname "$0")/.."

command=$(bash ci/lib/readme-command.sh test)
echo "\$ $command"
bash -euo pipefail -c "$command"
