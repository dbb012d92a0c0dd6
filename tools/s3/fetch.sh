#!/usr/bin/env bash
# Builds the Versity S3 gateway, a server of buckets in a folder, into the user's cache folder, once: archives in a bucket are
# tested with it. A module of its own pins it, as promtool's does.
set -euo pipefail
cd "$(dirname "$0")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}
[ "$(uname)" = Darwin ] && cache=$HOME/Library/Caches

# Named after what it is built of.
if command -v sha256sum >/dev/null; then sum=$(sha256sum <go.sum); else sum=$(shasum -a 256 <go.sum); fi
folder=$cache/marketlog/s3-${sum:0:12}
[ -x "$folder/versitygw" ] && exit 0
mkdir -p "$cache/marketlog"
staging=$folder.$$
trap 'rm -rf "$staging"' EXIT
echo "s3: building a server into $folder; it takes a minute, once"
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$staging/versitygw" github.com/versity/versitygw/cmd/versitygw
# A rename, so that what was interrupted never looks complete.
[ -d "$folder" ] || mv "$staging" "$folder"
