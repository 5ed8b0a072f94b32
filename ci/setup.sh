#!/usr/bin/env bash
# Gets what the other checks need, or says what is missing. A machine with
# rustup's stable toolchain is expected; the rest is installed where that is
# possible without asking anyone.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "setup: $1" >&2
    exit 1
}

command -v cargo >/dev/null || fail "cargo is not there: install Rust, https://rustup.rs"

# rustup leaves these out of its minimal profile.
for component in fmt:rustfmt clippy:clippy; do
    subcommand=${component%:*} name=${component#*:}
    if ! cargo "$subcommand" --version >/dev/null 2>&1; then
        echo "setup: $name is not there, asking rustup for it"
        rustup component add "$name" || true
        cargo "$subcommand" --version >/dev/null 2>&1 ||
            fail "cargo $subcommand does not run: \`rustup component add $name\`, or install a toolchain that has it"
    fi
done

# rustc links with cc; ci/borders.sh, docs.sh and main-job.sh are checked by
# python3.
missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v python3 >/dev/null || missing+=(python3)
if ((${#missing[@]})); then
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } ||
        fail "install ${missing[*]} (names as in Debian)"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
fi

rustc --version
cargo fmt --version
cargo clippy --version
python3 --version

# Now, so that a network that fails is not taken for code that fails. Locked:
# a Cargo.lock that lags behind the manifests is an error.
cargo fetch --locked
cargo fetch --locked --manifest-path bench/Cargo.toml
