#!/usr/bin/env bash
# The docs build without a warning (broken links are warnings), the README's
# Rust example compiles and runs, and links between our Markdown files lead
# somewhere.
set -euo pipefail
cd "$(dirname "$0")/.."

RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --all-features

# crates/pinfeed/src/lib.rs includes README.md as docs when doctests are built.
# `cargo test` runs it with the others; here we see to it that it is there.
out=$(cargo test -q --doc -p pinfeed -- Readme 2>&1) || {
    echo "$out"
    exit 1
}
if ! grep -Eq '[1-9][0-9]* passed' <<<"$out"; then
    echo "$out"
    echo "docs: no example of README.md was run: is it still included in crates/pinfeed/src/lib.rs?" >&2
    exit 1
fi

python3 ci/links.py
