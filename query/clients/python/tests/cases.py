"""Runs ../../cases.json with both clients: python -m cases URL KEY, this folder being the current one. Prints what does not hold."""
from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import marketlog
from marketlog._operations import Operations

CASES = json.loads((pathlib.Path(__file__).parents[2] / "cases.json").read_text())["cases"]
# Names as TypeScript and the API have them, to those of Python.
METHODS = {name.replace("_", ""): name for name in dir(Operations)}


def method_of(case: dict[str, Any]) -> str:
    if case["call"] == "pages":
        return METHODS["iter" + case["of"].lower().removeprefix("list").removeprefix("search")]
    return {"sql": "sql", "sqlFile": "sql_file"}.get(case["call"]) or METHODS[case["call"].lower()]


def stream_of(client: Any, case: dict[str, Any]) -> Any:
    asked = {name: value_of(value) for name, value in case["with"].items()}
    return client.stream(*asked.pop("symbols", ()), **asked)


def arguments(client: Any, case: dict[str, Any]) -> dict[str, Any]:
    known = {name.replace("_", "").lower(): name for name in inspect.signature(getattr(client, method_of(case))).parameters}
    return {known[name.replace("_", "").lower()]: value_of(value) for name, value in case["with"].items()}


def value_of(value: Any) -> Any:
    return datetime.now(timezone.utc) - timedelta(seconds=value["ago"]) if isinstance(value, dict) and "ago" in value else value


def at(answer: Any, place: str) -> Any:
    for step in filter(None, place.split(".")):
        if isinstance(answer, marketlog.Rows):
            answer = getattr(answer, step)
        else:
            answer = answer[int(step)] if isinstance(answer, list) else answer[step]
    return answer


def holds(got: Any, want: Any) -> bool:
    match want:
        case {"above": number}:
            return bool(got > number)
        case {"atLeast": length}:
            return bool(len(got) >= length)
        case {"begins": begin}:
            return bool(got.startswith(bytes.fromhex(begin)))
    return bool(got == want)


def faults(case: dict[str, Any], answers: list[Any]) -> list[str]:
    found = []
    for answer in answers:
        if "fails" in case:
            wanted = dict(case["fails"])
            kind = getattr(marketlog, wanted.pop("kind"))
            if not isinstance(answer, kind):
                found.append(f"got {answer!r}, want {kind.__name__}")
                continue
            found += [f"{name} of the error is {getattr(answer, name)!r}, want {want!r}" for name, want in wanted.items() if getattr(answer, name) != want]
        elif isinstance(answer, Exception):
            found.append(repr(answer))
        else:
            for place, want in case["holds"].items():
                try:
                    got = at(answer, place)
                except (KeyError, IndexError, AttributeError) as missing:
                    got = missing
                if isinstance(got, Exception) or not holds(got, want):
                    found.append(f"{place or 'the answer'} is {str(got)[:200]}, want {want!r}")
            if name := case.get("distinct"):
                if len({row[name] for row in answer}) != len(answer):
                    found.append(f"{name} comes twice")
    return [f"{case['name']}: {fault}" for fault in found]


def run(url: str, key: str, case: dict[str, Any]) -> list[str]:
    with marketlog.Client(url, case.get("key", key)) as client:
        def call(_: int) -> Any:
            try:
                if case["call"] == "stream":
                    with stream_of(client, case) as stream:
                        return list(itertools.islice(stream.messages() if case.get("messages") else stream, case["take"]))
                answer = getattr(client, method_of(case))(**arguments(client, case))
                return list(answer) if case["call"] == "pages" else answer
            except marketlog.MarketlogError as error:
                return error
        with ThreadPoolExecutor(case.get("atOnce", 1)) as pool:
            return faults(case, list(pool.map(call, range(case.get("atOnce", 1)))))


async def run_async(url: str, key: str, case: dict[str, Any]) -> list[str]:
    async with marketlog.AsyncClient(url, case.get("key", key)) as client:
        async def call() -> Any:
            try:
                if case["call"] == "stream":
                    async with stream_of(client, case) as stream:
                        messages = stream.messages() if case.get("messages") else stream
                        taken: list[Any] = []
                        async for one in messages:
                            taken.append(one)
                            if len(taken) == case["take"]:
                                break
                        return taken
                answer = getattr(client, method_of(case))(**arguments(client, case))
                return [row async for row in answer] if case["call"] == "pages" else await answer
            except marketlog.MarketlogError as error:
                return error
        return faults(case, await asyncio.gather(*(call() for _ in range(case.get("atOnce", 1)))))


def main(url: str, key: str) -> None:
    with ThreadPoolExecutor(1) as beside:
        blocking = beside.submit(lambda: [f"Client: {fault}" for case in CASES for fault in run(url, key, case)])

        async def awaited() -> list[str]:
            return [f"AsyncClient: {fault}" for case in CASES for fault in await run_async(url, key, case)]

        found = asyncio.run(awaited()) + blocking.result()
    print("\n".join(found) or f"{2 * len(CASES)} cases hold")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
