#!/bin/sh
# The price of bitcoin, why it is that number, and what lending USDC earns.
set -eu
url=${MARKETLOG_URL:-http://127.0.0.1:8080}
get() { curl -sS --fail-with-body -H "Authorization: Bearer $MARKETLOG_API_KEY" "$url$1"; echo; }
get "/api/v1/prices/BTC"
get "/api/v1/prices/BTC/explain"
get "/api/v1/rates/USDC?category=lending"
