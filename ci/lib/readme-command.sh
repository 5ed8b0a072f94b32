#!/usr/bin/env bash
# Prints the command that README.md gives under the mark `<!-- NAME -->`: what
# we check is what a reader is told to type.
#
#     bash ci/lib/readme-command.sh test
set -euo pipefail
cd "$(dirname "$0")/../.."

command=$(awk -v mark="<!-- $1 -->" '
    $0 == mark          { marked = 1; next }
    marked && /^```sh$/ { inside = 1; next }
    inside && /^```$/   { exit }
    inside              { print }
' README.md)

if [ -z "$command" ]; then
    echo "README.md has no \`\`\`sh block under <!-- $1 -->" >&2
    exit 1
fi
printf '%s\n' "$command"
