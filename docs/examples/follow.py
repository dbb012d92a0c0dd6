"""Every price of BTC, ETH and SOL exactly once, over any number of restarts of the server; written from /asyncapi.json alone."""
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ.get("MARKETLOG_URL", "http://127.0.0.1:8080")
HEADERS = {"Authorization": "Bearer " + os.environ["MARKETLOG_API_KEY"], "Accept": "application/x-ndjson"}


def follow(symbols, cursor=""):
    """Yields the messages of prices; cursor is that of the last one processed, by this program or one before it."""
    with urllib.request.urlopen(URL + "/asyncapi.json") as document:
        path = json.load(document)["channels"]["lines"]["address"]
    while True:
        asks = {"symbols": symbols, "delivery": "all", "heartbeatMs": 5000} | ({"cursor": cursor} if cursor else {})
        request = urllib.request.Request(URL + path + "?" + urllib.parse.urlencode(asks), headers=HEADERS)
        try:
            with urllib.request.urlopen(request, timeout=20) as lines:
                for line in filter(str.strip, map(bytes.decode, lines)):
                    message = json.loads(line)
                    if message["type"] in ("price_update", "gap"):
                        yield message
                    cursor = message.get("cursor", cursor)  # it was processed
        except urllib.error.HTTPError as refused:
            if refused.code < 500:
                raise
        except (OSError, http.client.HTTPException, ValueError):
            pass  # the connection was lost, perhaps in the middle of a line
        time.sleep(0.5)


for message in follow("BTC,ETH,SOL"):
    for price in message.get("data", [message]):
        print(json.dumps(price), flush=True)
    if len(sys.argv) > 1 and message["timestamp"] >= sys.argv[1]:  # until when, in log time
        break
