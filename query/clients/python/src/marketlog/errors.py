"""What calls raise. All of it is a MarketlogError."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import types


class MarketlogError(Exception):
    """Anything that this package raises by itself."""


class ConnectionFailed(MarketlogError):
    """The server could not be reached, or the connection broke, until the tries were used up. The cause is ``__cause__``."""


class GapError(MarketlogError):
    """The stream cannot send what came after ``since`` and up to ``until``. A stream begun with ``cursor`` goes on behind it."""

    def __init__(self, gap: types.MessageGap):
        self.reason = gap["reason"]
        self.since, self.until = gap.get("since"), gap["until"]
        self.cursor = gap.get("cursor")
        super().__init__(
            f"nothing is sent of what came after {self.since or 'the cursor'} and up to {self.until} ({self.reason}); "
            "go on with stream(cursor=error.cursor), or pass on_gap"
        )


class APIError(MarketlogError):
    """An answer that is no success.

    ``field`` is the parameter that is wrong and ``reason`` what is wrong with it, where the answer names one; else ``reason`` is
    the message. ``remedy`` is what to do, where that is known. ``details`` is all that the server said.
    """

    def __init__(self, status: int, details: Mapping[str, Any], retry_after: float | None = None):
        self.status = status
        self.details = dict(details)
        self.code: str = details.get("code", "")
        self.message: str = details.get("message", f"the server answered {status}")
        self.request_id: str = details.get("requestId", "")
        self.faults: dict[str, list[str]] = details.get("errors") or {}
        self.field = next(iter(self.faults), None)
        self.reason = "; ".join(self.faults[self.field]) if self.field is not None else self.message
        self.retry_after = retry_after if retry_after is not None else details.get("retryAfter")
        self.remedy: str | None = details.get("hint") or self._remedy()
        text = self.message
        for field, reasons in self.faults.items():
            text += f"; {field} {'; '.join(reasons)}"
        if self.remedy:
            text += f" ({self.remedy})"
        super().__init__(f"{self.code or status}: {text}")

    def _remedy(self) -> str | None:
        return None


class InvalidRequest(APIError):
    """400: a parameter is wrong; ``faults`` has all that are."""


class SQLError(InvalidRequest):
    """400: a statement is wrong, at ``line`` and ``column`` (from 1), or needs more than it may (code SQL_LIMIT)."""

    def __init__(self, status: int, details: Mapping[str, Any], retry_after: float | None = None):
        self.position: int | None = details.get("position")
        self.line: int | None = details.get("line")
        self.column: int | None = details.get("column")
        super().__init__(status, details, retry_after)


class NotAuthenticated(APIError):
    """401: the key is missing, invalid or revoked."""

    def _remedy(self) -> str:
        return "pass key= or set MARKETLOG_API_KEY"


class PlanRequired(APIError):
    """402: the plan of the key does not include this."""


class Forbidden(APIError):
    """403: this is allowed to nobody who asks this way."""


class NotFound(APIError):
    """404: there is no such coin, provider or path. ``candidates`` may be meant."""

    @property
    def candidates(self) -> Any:
        return self.details.get("candidates") or []


class AgedOut(APIError):
    """410: what was known at that time is kept no more; ``available_from`` is since when it is."""

    @property
    def available_from(self) -> str | None:
        return self.details.get("availableFrom")

    def _remedy(self) -> str | None:
        return f"ask for {self.available_from} or later" if self.available_from else None


class RateLimited(APIError):
    """429: the limit of the plan is used up; ``retry_after`` is the seconds until a request can be accepted."""

    def _remedy(self) -> str | None:
        return f"ask again after {self.retry_after:g} s" if self.retry_after is not None else None


class ServerError(APIError):
    """500 and above: the fault is the server's, which finds it by ``request_id`` in its log."""


class Unavailable(ServerError):
    """503: the server starts, or is overloaded; ``retry_after`` is the seconds until it is worth another try."""


_BY_STATUS: dict[int, type[APIError]] = {
    400: InvalidRequest, 401: NotAuthenticated, 402: PlanRequired, 403: Forbidden, 404: NotFound, 410: AgedOut, 429: RateLimited, 503: Unavailable,
}


def error_of(status: int, body: Any, retry_after: str | None) -> APIError:
    """The error that an answer is; body is its JSON, or anything else where a proxy answered."""
    details = body.get("error") if isinstance(body, dict) else None
    if not isinstance(details, dict):
        details = {}
    seconds = float(retry_after) if retry_after is not None and retry_after.isdigit() else None
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else APIError)
    if str(details.get("code", "")).startswith("SQL_"):
        kind = SQLError
    return kind(status, details, seconds)
