"""Writes how each operation is asked with each client, for the documents that show it. The gate runs them."""
from __future__ import annotations

import json
import urllib.parse

import golang
import python
import typescript

FILE = "../examples/samples.json"
# One of several parameters has to be given.
NEEDED = {"listRateSeries": ["coin"]}
STATEMENT = "SELECT symbol, price FROM v_prices ORDER BY symbol LIMIT 3"


def files(model) -> dict[str, str]:
    made = {o.name: {"curl": in_curl(o), "python": in_python(o), "typescript": in_typescript(o), "go": in_go(o)} for o in model.operations}
    made["runSQL"] = {
        "curl": curl("/api/v1/sql", {"query": STATEMENT}),
        "python": f'import marketlog\n\nclient = marketlog.Client()\nfor row in client.sql("{STATEMENT}"):\n    print(row["symbol"], row["price"])\n',
        "typescript": f'import {{ Client }} from "@marketlog/client"\n\nconst client = new Client()\n'
                      f'for (const row of await client.sql("{STATEMENT}")) console.log(row["symbol"], row["price"])\n',
        "go": go(f'rows, err := client.SQL(ctx, "{STATEMENT}", nil)\nif err != nil {{\n\treturn err\n}}\n'
                 'for row := range rows.All() {\n\tfmt.Println(row["symbol"], row["price"])\n}\n'),
    }
    # The libraries ask by the other method, which answers the same.
    made["resolveSymbolPosted"] = {
        "curl": curl("/api/v1/symbols/resolve", {"symbol": "XBT", "source": "kraken"}),
        "python": 'import marketlog\n\nclient = marketlog.Client()\nprint(client.resolve_symbol("XBT", source="kraken"))\n',
        "typescript": 'import { Client } from "@marketlog/client"\n\nconst client = new Client()\n'
                      'console.log(await client.resolveSymbol({ symbol: "XBT", source: "kraken" }))\n',
        "go": go('answer, err := client.ResolveSymbol(ctx, "XBT", &marketlog.ResolveSymbolOptions{Source: "kraken"})\n'
                 'if err != nil {\n\treturn err\n}\nfmt.Printf("%+v\\n", answer)\n'),
    }
    # A stream does not end by itself.
    made["getStream"] = {
        "curl": 'curl -fsN -H "Authorization: Bearer $MARKETLOG_API_KEY" -H "Accept: application/x-ndjson" \\\n'
                '  "$MARKETLOG_URL/api/v1/stream?symbols=BTC,ETH&delivery=all" | head -n 3\n',
        "python": "import marketlog\n\nclient = marketlog.Client()\nwith client.stream(\"BTC\", \"ETH\", delivery=\"all\") as prices:\n"
                  "    for price in prices:  # each exactly once\n        print(price[\"symbol\"], price[\"price\"])\n        break\n",
        "typescript": 'import { Client } from "@marketlog/client"\n\nconst client = new Client()\n'
                      'for await (const price of client.stream({ symbols: ["BTC", "ETH"], delivery: "all" })) { // each exactly once\n'
                      "  console.log(price.symbol, price.price)\n  break\n}\n",
        "go": go('stream := client.Stream(marketlog.StreamOptions{Symbols: []string{"BTC", "ETH"}, Delivery: marketlog.All})\n'
                 "for price, err := range stream.Prices(ctx) { // each exactly once\n\tif err != nil {\n\t\treturn err\n\t}\n"
                 "\tfmt.Println(price.Symbol, price.Price)\n\tbreak\n}\n"),
    }
    return {FILE: json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"}


def given(o) -> list[tuple]:
    """The parameters that a sample gives, with their values: what is required, in the order of the declaration."""
    fields = [f for f in o.fields if f.required] + [f for f in o.fields if not f.required and f.name in NEEDED.get(o.name, [])]
    for f in fields:
        if f.example is None:
            raise ValueError(f"{o.name}: the parameter {f.name} has no example")
    return [(f, f.example) for f in fields]


def in_curl(o) -> str:
    path, query, body = o.path, [], {}
    for f, value in given(o):
        text = ",".join(value) if isinstance(value, list) else str(value)
        if f.where == "path":
            path = path.replace("{" + f.name + "}", urllib.parse.quote(text, safe="/"))
        elif f.where == "query":
            query.append(f.name + "=" + urllib.parse.quote(text, safe=","))
        else:
            body[f.name] = value
    return curl(path + ("?" + "&".join(query) if query else ""), body)


def curl(path: str, body: dict) -> str:
    sent = f" -H 'Content-Type: application/json' \\\n  -d '{json.dumps(body)}'" if body else ""
    return f'curl -fsS -H "Authorization: Bearer $MARKETLOG_API_KEY"{sent} "$MARKETLOG_URL{path}"\n'


def in_python(o) -> str:
    asked = ", ".join(("" if f.required else python.snake(f.name) + "=") + json.dumps(value) for f, value in given(o))
    return f"import marketlog\n\nclient = marketlog.Client()\nprint(client.{python.snake(o.name)}({asked}))\n"


def in_typescript(o) -> str:
    asked = ", ".join(f"{typescript.key(f.name)}: {json.dumps(value)}" for f, value in given(o))
    return ('import { Client } from "@marketlog/client"\n\nconst client = new Client()\n'
            f'console.log(await client.{o.name}({"{ " + asked + " }" if asked else ""}))\n')


def in_go(o) -> str:
    name = golang.exported(o.name)
    asked = "".join(", " + in_go_value(f, value) for f, value in given(o) if f.required)
    if not all(f.required for f in o.fields):
        may = ", ".join(f"{golang.exported(f.name)}: {in_go_value(f, value)}" for f, value in given(o) if not f.required)
        asked += f", &marketlog.{name}Options{{{may}}}" if may else ", nil"
    return go(f'answer, err := client.{name}(ctx{asked})\nif err != nil {{\n\treturn err\n}}\nfmt.Printf("%+v\\n", answer)\n')


def in_go_value(f, value) -> str:
    if isinstance(value, list):
        return golang.type_of(f.schema, "api.") + "{" + ", ".join(json.dumps(v) for v in value) + "}"
    return json.dumps(value)


def go(body: str) -> str:
    """A part of a function that returns an error, beside the context ctx."""
    return 'client, err := marketlog.New(marketlog.Options{})\nif err != nil {\n\treturn err\n}\n' + body
