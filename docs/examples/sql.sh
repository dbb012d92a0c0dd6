#!/bin/sh
# Hours of bitcoin as CSV, with a value that is not part of the statement, and what a misspelt column is answered with.
set -eu
url=${MARKETLOG_URL:-http://127.0.0.1:8080}
ask() { curl -sS -H "Authorization: Bearer $MARKETLOG_API_KEY" -H "Content-Type: $1" "$url/api/v1/sql$2" --data-binary "$3"; echo; }
ask text/plain "?format=CSVWithNames&param_coin=bitcoin" "SELECT start, close FROM v_candles_1h WHERE coin_id = {coin:String} ORDER BY start DESC LIMIT 3"
ask application/json "" '{"query":"SELECT symbol, pricee FROM v_prices LIMIT 1"}'
