"""Prints each price of some coins as [coin, milliseconds, price], until it is ended: python -m follow sync|async SYMBOL…"""
from __future__ import annotations

import asyncio
import json
import sys

import marketlog
from marketlog.types import WsStreamed


def show(price: WsStreamed) -> None:
    print(json.dumps([price["coinId"], price["timestamp"], price["price"]]), flush=True)


async def follow(symbols: list[str]) -> None:
    async with marketlog.AsyncClient() as client, client.stream(*symbols, delivery="all") as prices:
        async for price in prices:
            show(price)


if sys.argv[1] == "async":
    asyncio.run(follow(sys.argv[2:]))
else:
    with marketlog.Client() as blocking, blocking.stream(*sys.argv[2:], delivery="all") as prices:
        for one in prices:
            show(one)
