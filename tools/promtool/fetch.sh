#!/usr/bin/env bash
# Builds Prometheus' promtool, which tests the alerts and runs the queries of the dashboards, into the user's cache folder,
# once, unless the machine has one, as with Debian's package prometheus: building it takes minutes. A module of its own pins it:
# it brings two hundred others, which no other tool should have to agree with.
set -euo pipefail
command -v promtool >/dev/null && exit 0
cd "$(dirname "$0")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}
[ "$(uname)" = Darwin ] && cache=$HOME/Library/Caches

# Named after what it is built of.
if command -v sha256sum >/dev/null; then sum=$(sha256sum <go.sum); else sum=$(shasum -a 256 <go.sum); fi
folder=$cache/marketlog/promtool-${sum:0:12}
[ -x "$folder/promtool" ] && exit 0
mkdir -p "$cache/marketlog"
staging=$folder.$$
trap 'rm -rf "$staging"' EXIT
echo "promtool: building it into $folder; it takes some minutes, once"
# Without the clients of all clouds, which it could ask for targets.
CGO_ENABLED=0 go build -trimpath -tags remove_all_sd -ldflags '-s -w' -o "$staging/promtool" github.com/prometheus/prometheus/cmd/promtool
# A rename, so that what was interrupted never looks complete.
[ -d "$folder" ] || mv "$staging" "$folder"
