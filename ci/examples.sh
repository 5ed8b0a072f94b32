#!/usr/bin/env bash
# Every example runs, without arguments, and says something.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build -q --examples -p pinfeed
for file in crates/pinfeed/examples/*.rs; do
    name=$(basename "$file" .rs)
    echo "examples: $name"
    out=$(cargo run -q -p pinfeed --example "$name")
    [ -n "$out" ] || {
        echo "examples: $name printed nothing" >&2
        exit 1
    }
done
