"""The first three frames with prices that changed."""
import asyncio
import json
import os

import websockets

URL = os.environ.get("MARKETLOG_URL", "http://127.0.0.1:8080").replace("http", "ws", 1)


async def main():
    headers = {"Authorization": "Bearer " + os.environ["MARKETLOG_API_KEY"]}
    async with websockets.connect(URL + "/api/v1/prices/ws", additional_headers=headers, max_size=None) as stream:
        frames = 0
        while frames < 3:
            frame = json.loads(await stream.recv())
            if frame["type"] == "price_update":
                frames += 1
                first = frame["data"][0]
                print(frame["timestamp"], len(frame["data"]), "prices,", first["symbol"], first["price"])


asyncio.run(main())
