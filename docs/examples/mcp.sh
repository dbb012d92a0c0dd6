#!/bin/sh
# The tools that a model is offered, and what one of them answers.
set -eu
url=${MARKETLOG_URL:-http://127.0.0.1:8080}
ask() { curl -sS --fail-with-body -H "Authorization: Bearer $MARKETLOG_API_KEY" -H "Content-Type: application/json" -d "$1" "$url/mcp"; echo; }
ask '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
ask '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_price","arguments":{"symbols":["BTC","ETH"]}}}'
