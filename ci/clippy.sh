#!/usr/bin/env bash
# No warning of rustc or clippy: with all crates and targets, and for the
# library with each feature alone, because one can lean on another unseen.
set -euo pipefail
cd "$(dirname "$0")/.."

# As an argument and not in RUSTFLAGS, which would build every dependency anew.
deny=(-D warnings)

cargo clippy --workspace --all-targets --all-features -- "${deny[@]}"
cargo clippy -p pinfeed --lib --no-default-features -- "${deny[@]}"
for feature in $(python3 ci/features.py pinfeed); do
    echo "clippy: pinfeed with only $feature"
    cargo clippy -p pinfeed --lib --no-default-features --features "$feature" -- "${deny[@]}"
done

# A workspace of its own, which nothing else here would see break.
cargo clippy --manifest-path bench/Cargo.toml --all-targets -- "${deny[@]}"
