#!/usr/bin/env bash
# Installs the tools that hold what is answered against what others make of it: those of npm beside this file, schemathesis and
# libraries that read files of SQL answers, that our Python client needs, that run the notebook and dbt into virtual environments in the user's cache folder, once.
# Without npm or Python it says so and succeeds: these tests are then skipped.
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

if ! command -v python3 >/dev/null; then
  echo "contract: no python3 on PATH: the tests with schemathesis and with readers of files will be skipped" >&2
  exit 0
fi
mkdir -p "$cache/marketlog"

staging=
trap 'rm -rf "$staging"' EXIT

# environment NAME REQUIREMENTS makes a virtual environment, which is named after what is in it.
environment() {
  local sum folder
  if command -v sha256sum >/dev/null; then sum=$(sha256sum <"$2"); else sum=$(shasum -a 256 <"$2"); fi
  folder=$cache/marketlog/$1-${sum:0:12}
  [ -d "$folder" ] && return
  staging=$folder.$$
  echo "contract: installing $2 into $folder"
  python3 -m venv "$staging"
  "$staging/bin/pip" install -q --disable-pip-version-check -r "$2"
  # A rename, so that a broken installation never looks complete; what is in it is run as a module, for its scripts name the old folder.
  [ -d "$folder" ] || mv "$staging" "$folder"
}
environment contract requirements.txt
environment readers readers.txt
environment clients clients.txt
environment notebook notebook.txt
environment dbt dbt.txt
