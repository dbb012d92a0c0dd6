#!/usr/bin/env bash
# Builds goreleaser, which makes the archives of a release, into the user's cache folder, once. A module of its own pins it, as promtool's
# does: it brings some hundred others, with the clients of all clouds.
set -euo pipefail
cd "$(dirname "$0")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}
[ "$(uname)" = Darwin ] && cache=$HOME/Library/Caches

# Named after what it is built of.
if command -v sha256sum >/dev/null; then sum=$(sha256sum <go.sum); else sum=$(shasum -a 256 <go.sum); fi
folder=$cache/marketlog/goreleaser-${sum:0:12}
if [ ! -x "$folder/goreleaser" ]; then
  mkdir -p "$cache/marketlog"
  staging=$folder.$$
  trap 'rm -rf "$staging"' EXIT
  echo "goreleaser: building it into $folder; it takes some minutes, once" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$staging/goreleaser" github.com/goreleaser/goreleaser/v2
  # A rename, so that what was interrupted never looks complete.
  [ -d "$folder" ] || mv "$staging" "$folder"
fi
echo "$folder/goreleaser"
