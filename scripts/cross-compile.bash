# Sourced with the name of a machine (aarch64): sets what cargo needs to compile for it here. `missing` says what is not
# there, or is empty; `build_std` has cargo's options, `compiler` and `strip` are programs for the machine.
missing=
build_std=()
compiler=$1-linux-gnu-gcc
strip=$1-linux-gnu-strip
if ! command -v "$compiler" >/dev/null; then
    missing="no compiler and linker for $1 (Debian: gcc-$1-linux-gnu)"
elif ! read -r rust_folder rust_kind < <(scripts/find-rust-for "$1-unknown-linux-gnu"); then
    missing="no Rust for $1, nor its library's sources (Debian: rust-web-src with rustc-web and cargo-web)"
else
    export PATH="$rust_folder:$PATH"
    export "CARGO_TARGET_${1^^}_UNKNOWN_LINUX_GNU_LINKER=$compiler"
    if [ "$rust_kind" = src ]; then
        export RUSTC_BOOTSTRAP=1 # the library is built from its sources, which needs the option -Z
        build_std=(-Zbuild-std=std,panic_unwind)
    fi
fi
