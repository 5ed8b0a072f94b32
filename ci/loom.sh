#!/usr/bin/env bash
# The models of crates/mem/src/loom_tests.rs: pool, tickets and hand-overs, in
# every order that their threads may take. About ten seconds, and a minute to
# build.
#
# Usage: ci/loom.sh [name of a model]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A folder of its own: the flag would have everything else built again.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom"
# Loom prints a run step by step with LOOM_LOG=trace, once a model has failed.
exec cargo test -p pinfeed-mem --lib --release -- "${1:-loom}"
