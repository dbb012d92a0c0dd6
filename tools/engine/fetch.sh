#!/bin/sh
# Fetches the pinned ClickHouse engine library into the user's cache folder, once for all checkouts.
# Safe to run twice at once and again at any time; a library that is already there is left alone.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
pins=$here/../../deploy/embedded/engine/pins.txt

say() { printf 'engine: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

system=$(uname -s) machine=$(uname -m)
line=$(awk -v s="$system" -v m="$machine" '$1 == s && $2 == m' "$pins")
[ -n "$line" ] || die "no pinned library for $system $machine; use an outside ClickHouse, or name your own libchdb in the configuration"
read -r _ _ package version integrity <<EOF
$line
EOF

# The same folder as Go's os.UserCacheDir, where the program looks.
case $system in
Darwin) cache=$HOME/Library/Caches ;;
*) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
esac
folder=$cache/marketlog/libchdb-$version
library=$folder/libchdb.so

if [ -f "$library" ]; then
	say "$library is there"
	exit 0
fi

command -v npm >/dev/null || die "npm is needed to fetch $package@$version (Debian: apt-get install npm)"
if command -v sha512sum >/dev/null; then
	hex() { sha512sum "$1" | cut -d' ' -f1; }
elif command -v shasum >/dev/null; then
	hex() { shasum -a 512 "$1" | cut -d' ' -f1; }
else
	die "sha512sum or shasum is needed to check the library"
fi
want=$(printf '%s' "${integrity#sha512-}" | base64 -d | od -An -v -tx1 | tr -d ' \n')

mkdir -p "$folder"
# The lock only spares a second download; what makes two runs safe is the rename at the end.
if command -v flock >/dev/null; then
	exec 9>"$folder/lock"
	flock -n 9 || { say "waiting for another run of this script"; flock 9; }
	if [ -f "$library" ]; then
		say "$library is there"
		exit 0
	fi
fi

scratch=$(mktemp -d "$folder/fetching.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

say "fetching $package@$version (about 180 MB)"
(cd "$scratch" && npm pack --silent "$package@$version" >npm.out 2>&1) ||
	{ cat "$scratch/npm.out" >&2; die "npm could not fetch $package@$version"; }
archive=$(find "$scratch" -name '*.tgz')
got=$(hex "$archive")
[ "$got" = "$want" ] || die "the archive of $package@$version is not the pinned one: sha512 is $got, want $want"

say "unpacking (about 570 MB)"
tar -xzf "$archive" -C "$scratch" package/libchdb.so
mv "$scratch/package/libchdb.so" "$library"
say "$library is ready"
