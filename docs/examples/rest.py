"""The price of bitcoin, why it is that number, and what lending USDC earns."""
import json
import os
import urllib.request

URL = os.environ.get("MARKETLOG_URL", "http://127.0.0.1:8080")


def get(path):
    request = urllib.request.Request(URL + path, headers={"Authorization": "Bearer " + os.environ["MARKETLOG_API_KEY"]})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


price = get("/api/v1/prices/BTC")["data"]["aggregated"]
print("BTC", price["price"], "USD, the median of", price["providers"], "providers")
why = get("/api/v1/prices/BTC/explain")["data"]
print("folded again from its inputs it is the same:", why["reproduced"])
for rate in get("/api/v1/rates/USDC?category=lending")["data"]["rates"][:5]:
    print(rate["provider"], rate["rate"], "% a year")
