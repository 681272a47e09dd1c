#!/bin/sh
# Installs the files of a release in a clean image or folder and tries them: version, samples, completions, man
# page.
#
# usage: try-install.sh deb|npm|script FOLDER
set -eu

kind=$1
files=$(cd "$2" && pwd)
HOME=$(mktemp -d)
export HOME

# Tries the program that is first on the path. $1: the folder with bash completions, $2: the man page.
try() {
    command -v threadline
    threadline --version
    threadline --demo list
    test -s "$1" || { echo "no completions at $1" >&2; exit 1; }
    if command -v bash >/dev/null 2>&1; then
        # The script defines a function that completes commands.
        bash -c '. "$1" && COMP_WORDS=(threadline sea) COMP_CWORD=1 && _threadline threadline sea threadline &&
            test "${COMPREPLY[*]}" = search && echo "completed: ${COMPREPLY[*]}"' try "$1"
    fi
    test -s "$2" || { echo "no man page at $2" >&2; exit 1; }
}

case $kind in
deb)
    # Only dpkg, so that missing dependencies are an error.
    dpkg --install "$files"/threadline_*.deb
    share=/usr/share
    # Minimal images do not unpack man pages.
    dpkg --listfiles threadline | grep -q /usr/share/man/man1/threadline.1.gz
    try $share/bash-completion/completions/threadline "$files/SHA256SUMS"
    dpkg --remove threadline
    ;;
npm)
    # The binary of another libc or system is refused by npm, as it is when it comes from a registry.
    prefix=$HOME/npm
    mkdir -p "$prefix"
    for package in "$files"/*-threadline-linux-x64*.tgz; do
        npm install --silent --global --prefix "$prefix" "$package" 2>/dev/null || echo "not for this system: $package"
    done
    npm install --silent --global --prefix "$prefix" --omit=optional "$files"/threadline-[0-9]*.tgz
    PATH=$prefix/bin:$PATH
    export NODE_PATH="$prefix/lib/node_modules"
    main=$prefix/lib/node_modules/threadline
    try "$main/completions/threadline.bash" "$main/man/threadline.1"
    ;;
script)
    # A folder in the layout of a release.
    mkdir -p "$HOME/releases/latest"
    ln -s "$files" "$HOME/releases/latest/download"
    command -v curl >/dev/null 2>&1 || { apt-get update -qq && apt-get install -qq --yes curl >/dev/null; } ||
        apk add --quiet curl
    THREADLINE_RELEASES=file://$HOME/releases sh "$files/install.sh"
    PATH=$HOME/.local/bin:$PATH
    share=$HOME/.local/share
    try "$share/bash-completion/completions/threadline" "$share/man/man1/threadline.1"
    ;;
*)
    echo 'usage: try-install.sh deb|npm|script FOLDER' >&2
    exit 2
    ;;
esac
echo "$kind: installed and tried"
