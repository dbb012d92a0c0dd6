#!/usr/bin/env bash
# Puts the official MCP clients into the user's cache folder, once, for the tests of the mcp tier.
# Without npm it says so and succeeds: that tier is then skipped.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v npm >/dev/null; then
  echo "mcp: no npm on PATH: the tests with official MCP clients will be skipped" >&2
  exit 0
fi

# The same folder as Go's os.UserCacheDir, where the tests look; it is named after what is in it.
cache=${XDG_CACHE_HOME:-$HOME/.cache}
[ "$(uname)" = Darwin ] && cache=$HOME/Library/Caches
if command -v sha256sum >/dev/null; then sum=$(sha256sum <package-lock.json); else sum=$(shasum -a 256 <package-lock.json); fi
clients=$cache/marketlog/mcp-clients-${sum:0:12}

[ -d "$clients" ] && exit 0

mkdir -p "$cache/marketlog"
staging=$(mktemp -d "$clients.XXXXXX")
trap 'rm -rf "$staging"' EXIT
echo "mcp: fetching the official clients into $clients"
cp package.json package-lock.json "$staging"
(cd "$staging" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
# A rename, so that a broken download never looks complete.
[ -d "$clients" ] || mv "$staging" "$clients"
