#!/bin/sh
# Installs strew: downloads the archive of this platform, checks its digest, and copies the program.
#
#   sh install.sh [FOLDER]        the folder of the program [default: ~/.local/bin]
#
# Environment: STREW_VERSION, STREW_URL (where the archives are), STREW_SHA256 (of the archive of this platform).
# A release has this script with the digests of its archives. Without a digest, SHA256SUMS beside the archive is asked;
# that finds a broken download, not a replaced one.
set -eu

version=${STREW_VERSION:-@VERSION@}
url=${STREW_URL:-@URL@}
to=${1:-$HOME/.local/bin}
# PLATFORM DIGEST, a line each.
digests="@DIGESTS@"

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

os=$(uname -s)
case $os in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    MINGW* | MSYS* | CYGWIN*) fail "for Windows take the .zip, or scoop or winget" ;;
    *) fail "no archive is made for $os" ;;
esac
arch=$(uname -m)
case $arch in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "no archive is made for $os on $arch" ;;
esac
archive=strew-$version-$os-$arch.tar.gz

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# fetch NAME: into the folder.
fetch() {
    if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --retry 3 --output "$folder/$1" "$url/$1"
    else
        wget --quiet --output-document "$folder/$1" "$url/$1"
    fi || fail "cannot download $url/$1"
}

digest=${STREW_SHA256:-$(printf '%s\n' "$digests" | sed -n "s/^$os-$arch \([0-9a-f]\{64\}\)$/\1/p")}
fetch "$archive"
if [ -z "$digest" ]; then
    fetch SHA256SUMS
    digest=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive$/\1/p" "$folder/SHA256SUMS")
    [ -n "$digest" ] || fail "SHA256SUMS does not name $archive"
fi

if command -v sha256sum >/dev/null 2>&1; then
    found=$(sha256sum "$folder/$archive" | cut -d ' ' -f 1)
else
    found=$(shasum -a 256 "$folder/$archive" | cut -d ' ' -f 1)
fi
[ "$found" = "$digest" ] || fail "$archive has digest $found, and $digest was expected: nothing is installed"

tar -xzf "$folder/$archive" -C "$folder"
mkdir -p "$to"
# First beside it: a program that runs can be replaced, not written.
cp "$folder/strew-$version/strew" "$to/.strew-new"
chmod 755 "$to/.strew-new"
mv "$to/.strew-new" "$to/strew"
echo "strew $version: $to/strew"
