#!/usr/bin/env bash
# The benchmarks build and run: a short pass, whose figures mean nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo run --quiet --manifest-path bench/Cargo.toml --profile dev -- --quick overhead arrays
