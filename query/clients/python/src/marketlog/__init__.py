"""Client of a Marketlog server: prices and where they come from, candles, yields, SQL, and the stream.

``Client`` blocks, ``AsyncClient`` is awaited; both have a method for each operation of the API, named as in /openapi.json. Answers are
the dictionaries that the server sent, with types in ``marketlog.types``.
"""
from ._client import AsyncClient, Client
from ._retry import Retry
from ._sql import Rows
from ._stream import AsyncStream, Stream
from .errors import (
    AgedOut,
    APIError,
    ConnectionFailed,
    Forbidden,
    GapError,
    InvalidRequest,
    MarketlogError,
    NotAuthenticated,
    NotFound,
    PlanRequired,
    RateLimited,
    ServerError,
    SQLError,
    Unavailable,
)

__all__ = [
    "APIError",
    "AgedOut",
    "AsyncClient",
    "AsyncStream",
    "Client",
    "ConnectionFailed",
    "Forbidden",
    "GapError",
    "InvalidRequest",
    "MarketlogError",
    "NotAuthenticated",
    "NotFound",
    "PlanRequired",
    "RateLimited",
    "Retry",
    "Rows",
    "SQLError",
    "ServerError",
    "Stream",
    "Unavailable",
]
