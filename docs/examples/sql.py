"""The coins whose venues disagree most, and the place of a fault in a statement."""
import json
import os
import urllib.error
import urllib.request

URL = os.environ.get("MARKETLOG_URL", "http://127.0.0.1:8080")


def ask(statement, **parameters):
    request = urllib.request.Request(URL + "/api/v1/sql", json.dumps({"query": statement, "parameters": parameters}).encode(), {
        "Authorization": "Bearer " + os.environ["MARKETLOG_API_KEY"], "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        body = json.load(answer)
    return [dict(zip([column["name"] for column in body["meta"]], row)) for row in body["data"]]


for row in ask("""SELECT symbol, max(confidence / price) * 1e4 AS bps, avg(accepted) AS venues
                  FROM v_prices WHERE time > now() - {seconds:UInt32} GROUP BY symbol ORDER BY bps DESC LIMIT 5""", seconds="300"):
    print(f"{row['symbol']:8} ± {row['bps']:.1f} bps over {row['venues']:.1f} venues")
try:
    ask("SELECT symbol,\n  pricee FROM v_prices")
except urllib.error.HTTPError as refused:
    fault = json.load(refused)["error"]
    print(f"{fault['code']} in line {fault['line']}, column {fault['column']}: {fault['message']}; {fault.get('hint', '')}")
