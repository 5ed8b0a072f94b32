#!/usr/bin/env bash
# The README's main job, shortened: it runs without a GPU and without data, and
# what it reports is consistent.
set -euo pipefail
cd "$(dirname "$0")/.."

command=$(bash ci/lib/readme-command.sh bench)
arguments="--data synthetic --runs 1 --work-ms 5 --verify --json -"
echo "\$ $command $arguments"
bash -euo pipefail -c "$command $arguments" | python3 ci/main_job.py
