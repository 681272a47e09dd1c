#!/bin/sh
# Installs threadline, its completions and its man page below ~/.local. Never needs root.
#
# Variables:
#   THREADLINE_VERSION   the release, such as 0.2.0 (default: the latest)
#   THREADLINE_PREFIX    the folder to install below (default: ~/.local)
#   THREADLINE_RELEASES  the address of the releases
set -eu

prefix=${THREADLINE_PREFIX:-$HOME/.local}
releases=${THREADLINE_RELEASES:-https://github.com/@OWNER@/threadline/releases}
# The glibc of the system on which the binaries are built.
glibc_major=2
glibc_minor=35

fail() {
    printf 'install: %s\n' "$1" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Prints whether the binary for glibc runs here; the one for musl is static and runs everywhere.
libc() {
    version=$(getconf GNU_LIBC_VERSION 2>/dev/null) || version=
    version=${version#glibc }
    major=${version%%.*}
    minor=${version#*.}
    minor=${minor%%.*}
    case $major$minor in
    '' | *[!0-9]*) echo musl ;;
    *)
        if [ "$major" -gt "$glibc_major" ] || { [ "$major" -eq "$glibc_major" ] && [ "$minor" -ge "$glibc_minor" ]; }; then
            echo gnu
        else
            echo musl
        fi
        ;;
    esac
}

target() {
    case $(uname -s)/$(uname -m) in
    Linux/x86_64 | Linux/amd64) echo "x86_64-unknown-linux-$(libc)" ;;
    Darwin/arm64) echo aarch64-apple-darwin ;;
    Darwin/x86_64) echo x86_64-apple-darwin ;;
    *) fail "no binary for $(uname -s) on $(uname -m); build it with cargo" ;;
    esac
}

# Downloads the file $1 to $2.
fetch() {
    if has curl; then
        curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
    elif has wget; then
        wget --quiet --output-document="$2" "$1"
    else
        fail 'curl or wget is needed'
    fi
}

sha256() {
    if has sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    else
        fail 'sha256sum or shasum is needed'
    fi
}

# Copies the file $1 of the archive to $2, with the mode $3. A running program is replaced, not overwritten.
place() {
    mkdir -p "$(dirname "$2")"
    cp "$1" "$2.new"
    chmod "$3" "$2.new"
    mv -f "$2.new" "$2"
}

main() {
    target=$(target)
    if [ -n "${THREADLINE_VERSION:-}" ]; then
        from=$releases/download/v${THREADLINE_VERSION#v}
    else
        from=$releases/latest/download
    fi

    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM

    fetch "$from/SHA256SUMS" "$work/SHA256SUMS" || fail "cannot download $from/SHA256SUMS"
    # The name of the archive contains the version.
    line=$(grep -E "^[0-9a-f]{64}  threadline-[0-9A-Za-z.+-]+-$target\.tar\.gz\$" "$work/SHA256SUMS") ||
        fail "this release has no archive for $target"
    expected=${line%% *}
    archive=${line##* }

    fetch "$from/$archive" "$work/$archive" || fail "cannot download $from/$archive"
    found=$(sha256 "$work/$archive")
    [ "$found" = "$expected" ] || fail "the checksum of $archive is $found, not $expected; nothing was installed"

    tar -xzf "$work/$archive" -C "$work"
    content=$work/${archive%.tar.gz}
    [ -f "$content/threadline" ] || fail "$archive does not contain threadline"

    place "$content/threadline" "$prefix/bin/threadline" 755
    place "$content/man/threadline.1" "$prefix/share/man/man1/threadline.1" 644
    completions=$content/completions
    place "$completions/threadline.bash" "$prefix/share/bash-completion/completions/threadline" 644
    place "$completions/_threadline" "$prefix/share/zsh/site-functions/_threadline" 644
    place "$completions/threadline.fish" "$prefix/share/fish/vendor_completions.d/threadline.fish" 644

    printf 'installed %s/bin/threadline (%s)\n' "$prefix" "${archive%.tar.gz}"
    case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) printf 'add %s/bin to your PATH\n' "$prefix" ;;
    esac
}

main
