"""Writes what the client libraries take from the API's documents: types of answers, types of the stream's messages, a method
for each operation, and a sample of its use.

    python3 tools/clients/generate.py http://127.0.0.1:8080            # writes query/clients/*; `make clients` starts a server for it
    python3 tools/clients/generate.py http://127.0.0.1:8080 --check    # fails where a file differs; the gate does this

Only the standard library is needed, and gofmt.
"""
from __future__ import annotations

import json
import pathlib
import re
import sys
import urllib.request

import golang
import python
import samples
import typescript

ROOT = pathlib.Path(__file__).resolve().parents[2] / "query" / "clients"

# What a client does by hand: these answer otherwise than with one JSON document, or the same as another operation.
BY_HAND = {"getStream", "runSQL", "resolveSymbolPosted"}


class Field:
    """A property of an object, or a parameter of an operation."""

    def __init__(self, name: str, schema: dict, required: bool, doc: str = "", where: str = "", example=None):
        self.name, self.schema, self.required, self.where, self.example = name, schema, required, where, example
        # A point in time may be the position of an answer instead.
        times = [s for s in schema.get("anyOf", []) if s.get("format") == "date-time"] if where else []
        self.positions = bool(times)
        if times:
            self.schema = times[0]
        self.doc = doc or schema.get("description", "")


class Object:
    """A named object. Objects within others are named after the field that holds them."""

    def __init__(self, name: str, fields: list[Field], doc: str = ""):
        self.name, self.fields, self.doc = name, fields, doc


class Operation:
    """An operation that answers with one JSON document. rows is where the list of a page lies, None where there are no pages."""

    def __init__(self, name: str, method: str, path: str, doc: str, fields: list[Field], answer: str):
        self.name, self.method, self.path, self.doc, self.fields, self.answer = name, method, path, doc, fields, answer
        self.rows: list[str] | None = None
        self.row: dict = {}

    def named(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)

    @property
    def size(self) -> Field | None:
        """The parameter that says how long a page is."""
        return self.named("per_page") or self.named("limit")

    @property
    def place(self) -> Field | None:
        """The parameter that says which page."""
        return self.named("page") or self.named("offset")


class Model:
    """What the documents describe."""

    def __init__(self, openapi: dict, asyncapi: dict):
        self.objects: dict[str, Object] = {}
        self.aliases: dict[str, dict] = {}
        for document in (openapi, asyncapi):
            for name, schema in sorted(document["components"]["schemas"].items()):
                if name not in self.objects and name not in self.aliases:
                    self.declare(name, schema)
        for name, message in sorted(asyncapi["components"]["messages"].items()):
            self.declare("Message" + pascal(name), message["payload"])
        self.operations = sorted(self.read(openapi), key=lambda o: o.name)

    def declare(self, name: str, schema: dict) -> None:
        if "properties" not in schema:
            self.aliases[name] = schema
            return
        required = schema.get("required", [])
        fields = []
        for key, value in sorted(schema["properties"].items()):
            fields.append(Field(key, self.hoist(name + pascal(key), value), key in required))
        self.objects[name] = Object(name, fields, schema.get("description", ""))

    def hoist(self, name: str, schema: dict) -> dict:
        """Gives an object within another a name of its own."""
        if "properties" in schema:
            self.declare(name, schema)
            return {"$ref": "#/components/schemas/" + name, "description": schema.get("description", "")}
        changed = dict(schema)
        for within in ("items", "additionalProperties"):
            if isinstance(schema.get(within), dict):
                changed[within] = self.hoist(name, schema[within])
        for one_of in ("anyOf", "oneOf", "allOf"):
            if one_of in schema:
                changed[one_of] = [self.hoist(name, s) for s in schema[one_of]]
        return changed

    def read(self, openapi: dict):
        for path, methods in openapi["paths"].items():
            for method, operation in methods.items():
                name = operation.get("operationId")
                if not path.startswith("/api/") or not name or name in BY_HAND:
                    continue
                fields = [
                    Field(p["name"], p["schema"], p.get("required", False), p.get("description", ""), p["in"], p.get("example"))
                    for p in operation.get("parameters", [])
                    if p["name"] != "view"  # these clients read the form of the reference
                ]
                body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
                for key, schema in sorted(body.get("properties", {}).items(), key=lambda p: p[0] not in body.get("required", [])):
                    fields.append(Field(key, schema, key in body.get("required", []), where="body", example=next(iter(schema.get("examples", [])), None)))
                answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
                answer = answer.get("anyOf", [answer])[0]["$ref"].split("/")[-1]  # the first is the form of the reference
                made = Operation(name, method.upper(), path, sentence(operation), fields, answer)
                if made.size and made.place and name.startswith(("list", "search")):  # of movers a page has several lists
                    made.rows, made.row = self.rows(answer)
                yield made

    def rows(self, answer: str) -> tuple[list[str] | None, dict]:
        """Finds the one list in a body, or in its data."""
        for path in ([], ["data"]):
            at = self.objects[answer]
            for step in path:
                ref = next((f.schema.get("$ref") for f in at.fields if f.name == step), None)
                if not ref:
                    return None, {}
                at = self.objects[ref.split("/")[-1]]
            lists = [f for f in at.fields if f.schema.get("type") == "array"]
            if len(lists) == 1:
                return path + [lists[0].name], lists[0].schema["items"]
        return None, {}


def pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))


def sentence(operation: dict) -> str:
    """The summary and the description, as one text."""
    summary, more = operation.get("summary", "").rstrip("."), operation.get("description", "")
    return f"{summary}. {more}".strip()


def fetch(base: str, path: str) -> dict:
    with urllib.request.urlopen(base.rstrip("/") + path, timeout=30) as answer:
        return json.load(answer)


def main() -> None:
    base, check = sys.argv[1], "--check" in sys.argv[2:]
    model = Model(fetch(base, "/openapi.json"), fetch(base, "/asyncapi.json"))
    different = []
    for file, text in {**golang.files(model), **python.files(model), **typescript.files(model), **samples.files(model)}.items():
        path = ROOT / file
        if path.exists() and path.read_text() == text:
            continue
        different.append(file)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if check and different:
        sys.exit(f"not as the documents say: {', '.join(different)}; `make clients` writes them")
    print("written: " + ", ".join(different) if different else "all as the documents say")


if __name__ == "__main__":
    main()
