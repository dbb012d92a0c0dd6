"""The stream, kept open over disconnects by the cursor of the last message that was processed."""
from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self

import anyio
import httpx2

from . import _wire, types
from ._retry import again, pause
from .errors import APIError, ConnectionFailed, GapError, MarketlogError, error_of

PATH = "/api/v1/stream"
Delivery = Literal["latest", "all"]

_HEARTBEAT_MS = 5000
# A connection that is silent for so long is given up: a heartbeat comes each five seconds.
_TIMEOUT = httpx2.Timeout(20.0)
# A connection that ends behind these has brought nothing: the next try waits longer.
_BEFORE_DATA = ("welcome", "subscribed", "resumed")
# No message is longer; the longest holds the prices of all coins.
_LONGEST_LINE = 32 << 20


class _Following:
    """Where a stream is, and what is to be done with a line or a failure."""

    def __init__(self, symbols: Iterable[str], channels: Iterable[str] | None, delivery: Delivery, cursor: str | None, snapshot: bool | None,
                 interval_ms: int | None, patience: float, since: datetime | str | None, until: datetime | str | None, speed: float | None):
        self.cursor = cursor
        self.reconnects = 0
        self.simulated: bool | None = None
        self.delivery: Delivery = "all" if since is not None else delivery
        # over means that a replay has come to its end.
        self.over = False
        self._asks = {"symbols": list(symbols) or None, "channels": list(channels) if channels is not None else None, "delivery": self.delivery,
                      "snapshot": snapshot, "intervalMs": interval_ms, "heartbeatMs": _HEARTBEAT_MS, "from": None if since is None else _wire.text("since", since), "to": None if until is None else _wire.text("until", until),
                      "speed": speed}
        self._patience = patience
        self._failures = 0
        self._failing_since = 0.0

    def request(self) -> dict[str, Any]:
        asks = self._asks | {"cursor": self.cursor or None}
        if self.cursor:
            asks["from"] = None
        return {"url": PATH, "params": _wire.asked(asks), "headers": {"Accept": "application/x-ndjson"}, "timeout": _TIMEOUT}

    def read(self, line: bytes) -> dict[str, Any] | None:
        """The message in a line; None of a line that keeps the connection open."""
        if not line.strip():
            return None
        message: dict[str, Any] = json.loads(line)
        if message["type"] == "error":
            fault = message["error"]
            if fault.get("code") == "LAGGING":
                raise ConnectionFailed(fault.get("message", "the store lags behind"))
            raise error_of(400, {"error": fault}, None)
        if message["type"] == "welcome":
            self.simulated = message.get("simulated")
        if message["type"] not in _BEFORE_DATA:
            self._failures = 0
        return message

    def processed(self, message: dict[str, Any]) -> None:
        self.cursor = message.get("cursor") or self.cursor
        self.over = message["type"] == "replay_end"
        if message["type"] == "live":
            self._asks["speed"] = None  # the present has its own

    def failed(self, error: Exception) -> float:
        """Seconds until the next try, or an error if there is none."""
        if isinstance(error, APIError) and not (again(error) or error.status >= 500):
            raise error
        if self._failures == 0:
            self._failing_since = time.monotonic()
        seconds = min(30.0, pause(error, self._failures))
        self._failures += 1
        if time.monotonic() + seconds - self._failing_since > self._patience:
            raise error if isinstance(error, MarketlogError) else ConnectionFailed(f"no message for {self._patience:g} s: {error!r}") from error
        self.reconnects += 1
        return seconds


class _Lines:
    """Whole lines out of chunks. What is left when a connection ends is the part of a line that was lost, and comes again."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        self._rest += chunk
        *lines, rest = self._rest.split(b"\n")
        self._rest = bytearray(rest)
        if len(rest) > _LONGEST_LINE:
            raise ConnectionFailed(f"a message of more than {_LONGEST_LINE} bytes")
        return [bytes(line) for line in lines]


def _prices(following: _Following, message: dict[str, Any], on_gap: Callable[[types.MessageGap], object] | None) -> list[types.WsStreamed]:
    """The prices in a message. With delivery all the prices at the beginning are state, not one of the prices that are written."""
    kind = message["type"]
    if kind == "gap":
        gap: types.MessageGap = message  # type: ignore[assignment]
        if on_gap is not None:
            on_gap(gap)
        elif following.delivery == "all":
            raise GapError(gap)
    if kind == "price_update" or kind == "initial_prices" and following.delivery == "latest":
        prices: list[types.WsStreamed] = message["data"]
        return prices
    return []


class _Followed:
    """What can be asked of a stream of either kind."""

    _following: _Following

    @property
    def cursor(self) -> str | None:
        """Where a stream begun with it goes on: behind the last message whose prices were all taken."""
        return self._following.cursor

    @property
    def reconnects(self) -> int:
        """How often the connection was lost, or could not be made."""
        return self._following.reconnects

    @property
    def simulated(self) -> bool | None:
        """Whether the prices are invented; None before the first message."""
        return self._following.simulated


class Stream(_Followed):
    """An iterator over prices, endless but for a replay with an end. Leaving ``with``, or ``close``, ends the connection."""

    def __init__(self, http: httpx2.Client, following: _Following, on_gap: Callable[[types.MessageGap], object] | None):
        self._following = following
        self._messages = _follow(http, following)
        self._prices = self._flatten(on_gap)

    def _flatten(self, on_gap: Callable[[types.MessageGap], object] | None) -> Iterator[types.WsStreamed]:
        for message in self._messages:
            yield from _prices(self._following, message, on_gap)

    def messages(self) -> Iterator[dict[str, Any]]:
        """Whole messages in place of prices, those about the stream itself included; ``marketlog.types`` has one Message type for each
        ``type``. A gap is a message here, not an error. ``cursor`` moves when the next message is asked for."""
        return self._messages

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> types.WsStreamed:
        return next(self._prices)

    def close(self) -> None:
        self._messages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _follow(http: httpx2.Client, following: _Following) -> Generator[dict[str, Any], None, None]:
    while True:
        try:
            with http.stream("GET", **following.request()) as response:
                if response.status_code == 204:
                    return  # nothing is left of a replay
                if response.status_code != 200:
                    response.read()
                    raise _wire.refusal(response)
                lines = _Lines()
                for chunk in response.iter_bytes():
                    for line in lines.feed(chunk):
                        if (message := following.read(line)) is not None:
                            yield message
                            following.processed(message)
                            if following.over:
                                return
            raise ConnectionFailed("the server ended the stream")
        except (httpx2.TransportError, MarketlogError, ValueError) as error:
            time.sleep(following.failed(error))


class AsyncStream(_Followed):
    """An asynchronous iterator over prices, endless but for a replay with an end. Leaving ``async with``, or ``aclose``, ends the connection."""

    def __init__(self, http: httpx2.AsyncClient, following: _Following, on_gap: Callable[[types.MessageGap], object] | None):
        self._following = following
        self._messages = _follow_async(http, following)
        self._prices = self._flatten(on_gap)

    async def _flatten(self, on_gap: Callable[[types.MessageGap], object] | None) -> AsyncIterator[types.WsStreamed]:
        async for message in self._messages:
            for price in _prices(self._following, message, on_gap):
                yield price

    def messages(self) -> AsyncIterator[dict[str, Any]]:
        """As ``Stream.messages``."""
        return self._messages

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> types.WsStreamed:
        return await anext(self._prices)

    async def aclose(self) -> None:
        await self._messages.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()


async def _follow_async(http: httpx2.AsyncClient, following: _Following) -> AsyncGenerator[dict[str, Any], None]:
    while True:
        try:
            async with http.stream("GET", **following.request()) as response:
                if response.status_code == 204:
                    return
                if response.status_code != 200:
                    await response.aread()
                    raise _wire.refusal(response)
                lines = _Lines()
                async for chunk in response.aiter_bytes():
                    for line in lines.feed(chunk):
                        if (message := following.read(line)) is not None:
                            yield message
                            following.processed(message)
                            if following.over:
                                return
            raise ConnectionFailed("the server ended the stream")
        except (httpx2.TransportError, MarketlogError, ValueError) as error:
            await anyio.sleep(following.failed(error))
