#!/usr/bin/env bash
# The code is formatted as rustfmt.toml says. To format it: cargo fmt --all
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all -- --check
cargo fmt --manifest-path bench/Cargo.toml -- --check
