#!/usr/bin/env bash
# Which crate may know what: the table in CONTRIBUTING.md, as a check. A border
# that nothing checks is gone after ten commits.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
fail() {
    echo "borders: $1" >&2
    failed=1
}

# no_dependency CRATE "cargo tree arguments" NAME...: the crate, built with
# these arguments, needs none of the names. Test dependencies do not count.
no_dependency() {
    local crate=$1 arguments=$2 tree name
    shift 2
    # shellcheck disable=SC2086 # the arguments are words
    tree=$(cargo tree --locked -p "$crate" $arguments -e normal,build --prefix none --format '{p}')
    for name in "$@"; do
        if grep -q "^$name v" <<<"$tree"; then
            fail "$crate ($arguments) depends on $name"
        fi
    done
}

# not_in PATTERN WHY PATH...: no code (comments and strings aside) of the paths
# matches the extended regular expression.
not_in() {
    local pattern=$1 why=$2 code found
    shift 2
    code=$(python3 ci/code.py "$@")
    found=$(grep -E "^[^:]*:[0-9]*:.*($pattern)" <<<"$code" || true)
    if [ -n "$found" ]; then
        fail "$why:"
        echo "$found" >&2
    fi
}

# The library knows no command line and no Python, whatever is switched on;
# with nothing switched on it is small.
no_dependency pinfeed "--all-features" clap pyo3
no_dependency pinfeed "--no-default-features" \
    cudarc pyo3 clap pinfeed-derive ndarray png zune-jpeg tar flate2

# The memory crate knows memory. What a tensor, a sample or an epoch is, it
# does not: it deals in rows of bytes.
no_dependency pinfeed-mem "--all-features" \
    pinfeed pinfeed-derive bytemuck clap half ndarray png pyo3 serde smallvec tar zune-jpeg
not_in '[A-Za-z0-9_]*([Dd]ata_?[Ss]et|DATA_?SET|[Ee]poch|EPOCH|[Bb]atch|BATCH)' \
    "crates/mem has names of things that it may not know" crates/mem/src

# Unsafe code is in the memory crate, and the compiler holds the others to it.
# Tests may have some: there is no safe way to fork.
others=()
for crate in crates/*/; do
    crate=${crate%/}
    [ "$crate" = crates/mem ] && continue
    others+=("$crate/src")
    [ -d "$crate/examples" ] && others+=("$crate/examples")
    root=$crate/src/lib.rs
    [ -f "$root" ] || root=$crate/src/main.rs
    code=$(python3 ci/code.py "$root")
    grep -Fq '#![forbid(unsafe_code)]' <<<"$code" ||
        fail "$root lacks #![forbid(unsafe_code)]"
done
not_in '\bunsafe\b' "unsafe code outside crates/mem" "${others[@]}"

# Only the memory crate calls the CUDA driver.
not_in '\bcudarc\b' "cudarc is named outside crates/mem" "${others[@]}"

exit "$failed"
