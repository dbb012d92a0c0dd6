#!/usr/bin/env bash
# Writes the generated files of query/clients and query/examples from what bin/marketlog says of itself, which it starts without feeds for that.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
XDG_RUNTIME_DIR=$folder bin/marketlog run --feeds none --data-dir "$folder/data" --listen "127.0.0.1:$port" --kafka-listen 127.0.0.1:0 --sql-listen "" >"$folder/log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
for _ in {1..600}; do
  curl -fsS -o "$folder/document" "http://127.0.0.1:$port/openapi.json" 2>/dev/null && break
  if ! kill -0 "$server" 2>/dev/null; then
    cat "$folder/log" >&2
    exit 1
  fi
  sleep 0.1
done
python3 -B tools/clients/generate.py "http://127.0.0.1:$port" "$@"
