#!/usr/bin/env bash
# Installs the tools that hold the API against its document: those of npm beside this file, schemathesis into a virtual
# environment in the user's cache folder, once. Without npm or Python it says so and succeeds: these tests are
# then skipped.
set -euo pipefail
cd "$(dirname "$0")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}
[ "$(uname)" = Darwin ] && cache=$HOME/Library/Caches

if ! command -v npm >/dev/null; then
  echo "contract: no npm on PATH: the tests with redocly and openapi-typescript will be skipped" >&2
elif [ package-lock.json -nt node_modules/.installed ]; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.installed
fi

# Named after what is in it.
if command -v sha256sum >/dev/null; then sum=$(sha256sum <requirements.txt); else sum=$(shasum -a 256 <requirements.txt); fi
folder=$cache/marketlog/contract-${sum:0:12}
[ -d "$folder" ] && exit 0
if ! command -v python3 >/dev/null; then
  echo "contract: no python3 on PATH: the test with schemathesis will be skipped" >&2
  exit 0
fi
mkdir -p "$cache/marketlog"
staging=$folder.$$
trap 'rm -rf "$staging"' EXIT
echo "contract: installing schemathesis into $folder"
python3 -m venv "$staging"
"$staging/bin/pip" install -q --disable-pip-version-check -r requirements.txt
# A rename, so that a broken installation never looks complete; it is run as a module, for its scripts name the old folder.
[ -d "$folder" ] || mv "$staging" "$folder"
