from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import httpx2

from . import _sql, _wire, types
from ._async_operations import AsyncOperations
from ._operations import Operations
from ._retry import Retry
from ._stream import AsyncStream, Delivery, Stream, _Following
from .errors import APIError, ConnectionFailed

if TYPE_CHECKING:
    import pandas
    import polars

_SQL = "/api/v1/sql"


class _Common:
    """How a client of either kind is made, and what it remembers."""

    def __init__(self, url: str | None = None, key: str | None = None, *, timeout: float = 30.0, retry: Retry | None = None):
        """url is the server's, else MARKETLOG_URL, else http://127.0.0.1:8080; key an API key, else MARKETLOG_API_KEY. timeout is in seconds, of
        each attempt of a call."""
        self._settings = _wire.settings(url, key, timeout)
        self._retry = retry or Retry()
        self.simulated: bool | None = None
        """Whether the last answer was made from invented numbers; None before the first."""
        self.position: str | None = None
        """What the last answer was made of: as_of with it gives the same answer again; None before the first."""

    def _read(self, response: httpx2.Response) -> httpx2.Response:
        if response.status_code != 200:
            raise _wire.refusal(response)
        self.simulated = _wire.simulated(response)
        self.position = response.headers.get("X-Position")
        return response

    def _next(self, error: Exception, attempt: int, waited: float) -> float:
        """Seconds until the next attempt; raises where there is none."""
        seconds = self._retry.wait(error, attempt, waited)
        if seconds is not None:
            return seconds
        if isinstance(error, httpx2.TransportError):
            raise ConnectionFailed(f"{self._settings['base_url']} could not be asked, {attempt} times: {error!r}") from error
        raise error


class Client(_Common, Operations):
    """A client that blocks. It may be used by several threads."""

    def __init__(self, url: str | None = None, key: str | None = None, *, timeout: float = 30.0, retry: Retry | None = None):
        super().__init__(url, key, timeout=timeout, retry=retry)
        self._http = httpx2.Client(**self._settings)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def sql(self, query: str, parameters: Mapping[str, Any] | None = None) -> _sql.Rows:
        """The rows of a statement, at most 100,000; parameters are the values of its {name:Type}."""
        return _sql.rows_of(self._send("POST", _SQL, {}, _sql.statement(query, parameters)).json())

    def sql_file(self, query: str, parameters: Mapping[str, Any] | None = None, *, format: _sql.FileFormat = "Parquet") -> bytes:
        """The rows of a statement as a file, at most 5,000,000."""
        return self._send("POST", _SQL, {"format": format}, _sql.statement(query, parameters)).content

    def sql_pandas(self, query: str, parameters: Mapping[str, Any] | None = None) -> pandas.DataFrame:
        """The rows of a statement, as pandas has them; needs ``marketlog[pandas]``."""
        return _sql.to_pandas(self.sql_file(query, parameters))

    def sql_polars(self, query: str, parameters: Mapping[str, Any] | None = None) -> polars.DataFrame:
        """The rows of a statement, as polars has them; needs ``marketlog[polars]``."""
        return _sql.to_polars(self.sql_file(query, parameters))

    def stream(self, *symbols: str, delivery: Delivery = "latest", channels: Iterable[str] | None = None, cursor: str | None = None, snapshot: bool | None = None,
               interval_ms: int | None = None, patience: float = 300.0, on_gap: Callable[[types.MessageGap], object] | None = None,
               since: datetime | str | None = None, until: datetime | str | None = None, speed: float | None = None) -> Stream:
        """Prices as they change, over any number of disconnects and restarts of the server.

        symbols are coins by symbol or id, none: all. With delivery "all" each price that is written comes exactly once, and what
        cannot be sent raises GapError, or is given to on_gap; with "latest" the newest price of each coin. cursor is that of a
        stream before this one, to go on behind it. After patience, in seconds, without any message the last failure is
        raised. channels other than prices come from ``stream(…).messages()``. since begins in the past, with delivery "all": a replay,
        which ends at until or goes on with the present; speed is how many seconds of the log come in one, as many as are read without it.
        """
        return Stream(self._http, _Following(symbols, channels, delivery, cursor, snapshot, interval_ms, patience, since, until, speed), on_gap)

    def _send(self, method: str, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None) -> httpx2.Response:
        attempt, waited = 0, 0.0
        while True:
            attempt += 1
            try:
                return self._read(self._http.request(method, path, params=_wire.asked(query), json=body))
            except (httpx2.TransportError, APIError) as error:
                seconds = self._next(error, attempt, waited)
            time.sleep(seconds)
            waited += seconds

    def _ask(self, method: str, path: str, at: Mapping[str, Any], query: Mapping[str, Any], body: Mapping[str, Any]) -> Any:
        return self._send(method, _wire.address(path, at), query, _wire.posted(body)).json()

    def _pages(self, path: str, query: Mapping[str, Any], size: tuple[str, int], place: str, rows: Sequence[str]) -> Iterator[Any]:
        at = _wire.Place(place, size)
        while at.more:
            page = at.took(_wire.within(self._ask("GET", path, {}, dict(query) | at.query, {}), rows))
            yield from page


class AsyncClient(_Common, AsyncOperations):
    """A client to be awaited, under asyncio or trio."""

    def __init__(self, url: str | None = None, key: str | None = None, *, timeout: float = 30.0, retry: Retry | None = None):
        super().__init__(url, key, timeout=timeout, retry=retry)
        self._http = httpx2.AsyncClient(**self._settings)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def sql(self, query: str, parameters: Mapping[str, Any] | None = None) -> _sql.Rows:
        """As ``Client.sql``."""
        return _sql.rows_of((await self._send("POST", _SQL, {}, _sql.statement(query, parameters))).json())

    async def sql_file(self, query: str, parameters: Mapping[str, Any] | None = None, *, format: _sql.FileFormat = "Parquet") -> bytes:
        """As ``Client.sql_file``."""
        return (await self._send("POST", _SQL, {"format": format}, _sql.statement(query, parameters))).content

    async def sql_pandas(self, query: str, parameters: Mapping[str, Any] | None = None) -> pandas.DataFrame:
        """As ``Client.sql_pandas``."""
        return _sql.to_pandas(await self.sql_file(query, parameters))

    async def sql_polars(self, query: str, parameters: Mapping[str, Any] | None = None) -> polars.DataFrame:
        """As ``Client.sql_polars``."""
        return _sql.to_polars(await self.sql_file(query, parameters))

    def stream(self, *symbols: str, delivery: Delivery = "latest", channels: Iterable[str] | None = None, cursor: str | None = None, snapshot: bool | None = None,
               interval_ms: int | None = None, patience: float = 300.0, on_gap: Callable[[types.MessageGap], object] | None = None,
               since: datetime | str | None = None, until: datetime | str | None = None, speed: float | None = None) -> AsyncStream:
        """As ``Client.stream``, for ``async for``."""
        return AsyncStream(self._http, _Following(symbols, channels, delivery, cursor, snapshot, interval_ms, patience, since, until, speed), on_gap)

    async def _send(self, method: str, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None) -> httpx2.Response:
        attempt, waited = 0, 0.0
        while True:
            attempt += 1
            try:
                return self._read(await self._http.request(method, path, params=_wire.asked(query), json=body))
            except (httpx2.TransportError, APIError) as error:
                seconds = self._next(error, attempt, waited)
            await anyio.sleep(seconds)
            waited += seconds

    async def _ask(self, method: str, path: str, at: Mapping[str, Any], query: Mapping[str, Any], body: Mapping[str, Any]) -> Any:
        return (await self._send(method, _wire.address(path, at), query, _wire.posted(body))).json()

    async def _pages(self, path: str, query: Mapping[str, Any], size: tuple[str, int], place: str, rows: Sequence[str]) -> AsyncIterator[Any]:
        at = _wire.Place(place, size)
        while at.more:
            for row in at.took(_wire.within(await self._ask("GET", path, {}, dict(query) | at.query, {}), rows)):
                yield row
