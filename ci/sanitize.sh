#!/usr/bin/env bash
# The tests of the crate with the unsafe code under AddressSanitizer, with leak
# detection. On the stable toolchain, whose standard library is not built for
# it: what goes wrong inside std is seen only through calls of malloc and free.
#
# Doctests are left out: rustdoc takes flags of its own, and most of ours show
# what does not compile. ThreadSanitizer was tried and is left out: it does not
# see the order that an uninstrumented std makes (a Mutex that is waited for,
# the fence in Arc's drop), and reports races in what a Mutex guards and in the
# test harness itself. The hand-overs between threads are ci/loom.sh's.
set -euo pipefail
cd "$(dirname "$0")/.."

target=x86_64-unknown-linux-gnu
if [ "$(rustc -vV | sed -n 's/^host: //p')" != "$target" ]; then
    echo "sanitize: skipped: this is not $target"
    exit 0
fi

# A folder of its own: the flag would have everything else built again.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitize"
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=address"
tests=(cargo test --quiet --target "$target" -p pinfeed-mem --lib --tests)

# LeakSanitizer stops the process to look at it, which a debugger or a sandbox
# may not allow.
leaks=1
if ! leak_check=$(ASAN_OPTIONS=detect_leaks=1 "${tests[@]}" -- no_such_test 2>&1); then
    if grep -q 'LeakSanitizer has encountered a fatal error' <<<"$leak_check"; then
        echo "sanitize: leak detection skipped: LeakSanitizer can not run here (ptrace is not allowed)"
        leaks=0
    else
        echo "$leak_check"
        exit 1
    fi
fi

ASAN_OPTIONS="detect_leaks=$leaks" "${tests[@]}" -- --skip forget

echo "sanitize: without leak detection: the tests named forget_*, which leak on purpose"
ASAN_OPTIONS=detect_leaks=0 "${tests[@]}" -- forget
