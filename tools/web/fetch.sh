#!/usr/bin/env bash
# Installs what the pages are built with, and what drives a browser in their test, beside this file, once; no browser is downloaded.
# Without npm it says so and succeeds: the tests of the pages in a browser are then skipped.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v npm >/dev/null; then
  echo "web: no npm on PATH: the tests of the pages in a browser will be skipped" >&2
elif [ package-lock.json -nt node_modules/.installed ]; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.installed
fi
