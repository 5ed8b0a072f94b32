#!/usr/bin/env bash
# Measures pinfeed and what stands beside it, in one run, and keeps the rows:
#   bench/run.sh [MACHINE]      ->  bench/record/MACHINE/<date>.csv
# PINFEED_JPEG_DIR names a folder of class folders of JPEG files (for the JPEG
# rows); PINFEED_TORCH a python that has torch and torchvision (for PyTorch's).
set -euo pipefail
cd "$(dirname "$0")/.."

machine=${1:-$(uname -m)-$(nproc)cpu}
out=bench/record/$machine/$(date +%F).csv
mkdir -p "$(dirname "$out")"
cargo build --quiet --release --manifest-path bench/Cargo.toml
cargo build --quiet --release -p pinfeed-cli

rows=$(mktemp)
trap 'rm -f "$rows" "$rows.torch" "$rows.json"' EXIT
bench/target/release/pinfeed-bench >"$rows"
if [ -n "${PINFEED_TORCH:-}" ]; then
    "$PINFEED_TORCH" bench/peers/torch_loader.py >"$rows.torch"
else
    echo "skipped: PyTorch's rows (set PINFEED_TORCH)" >&2
    : >"$rows.torch"
fi
main=(bench --num-workers 6 --batch-size 1024 --work-ms 100 --runs 5)
target/release/pinfeed "${main[@]}" --data synthetic --pin-memory off --json "$rows.json" >&2
python3 bench/join.py "$machine" "$rows" "$rows.torch" "$rows.json" >>"$out"
echo "rows added to $out" >&2
