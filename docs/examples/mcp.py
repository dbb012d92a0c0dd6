"""The tools that a model is offered, and what one of them answers."""
import json
import os
import urllib.request

URL = os.environ.get("MARKETLOG_URL", "http://127.0.0.1:8080")


def ask(method, params=None):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    request = urllib.request.Request(
        URL + "/mcp",
        json.dumps(body).encode(),
        {"Authorization": "Bearer " + os.environ["MARKETLOG_API_KEY"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["result"]


print([tool["name"] for tool in ask("tools/list")["tools"]])
print(ask("tools/call", {"name": "get_price", "arguments": {"symbols": ["BTC", "ETH"]}})["structuredContent"])
