#!/bin/sh
# Prices as they change, for three seconds. curl speaks no WebSocket: it makes the handshake and prints what comes, the
# text of each frame behind the few bytes of its header.
set -eu
url=${MARKETLOG_URL:-http://127.0.0.1:8080}
curl -sS --http1.1 --no-buffer --max-time 3 -H "Authorization: Bearer $MARKETLOG_API_KEY" \
  -H "Connection: Upgrade" -H "Upgrade: websocket" -H "Sec-WebSocket-Version: 13" -H "Sec-WebSocket-Key: $(head -c 16 /dev/urandom | base64)" \
  --output - "$url/api/v1/prices/ws" | tr -cd '[:print:]\n' || true
echo
