"""What both clients send and read, without the sending and reading."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

import httpx2

from .errors import APIError, error_of

DEFAULT_URL = "http://127.0.0.1:8080"
URL_VARIABLE, KEY_VARIABLE = "MARKETLOG_URL", "MARKETLOG_API_KEY"


def settings(url: str | None, key: str | None, timeout: float) -> dict[str, Any]:
    """How an HTTP client of either kind is made."""
    url = url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"the address of the server is {url!r}; it must begin with http:// or https://")
    key = key or os.environ.get(KEY_VARIABLE)
    headers = {"Accept": "application/json", "User-Agent": "marketlog-python"}
    if key:
        headers["Authorization"] = "Bearer " + key
    return {"base_url": url.rstrip("/"), "headers": headers, "timeout": timeout, "follow_redirects": False}


def address(path: str, at: Mapping[str, Any]) -> str:
    """Fills the places of a path. A slash within a value is escaped."""
    for name, value in at.items():
        text = str(value)
        if text in ("", ".", ".."):  # another path, once the client or a proxy has normalised it
            raise ValueError(f"{name} is {text!r}, which names nothing")
        path = path.replace("{" + name + "}", quote(text, safe=""))
    return path


def asked(query: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as they are sent; those that are None are left out."""
    return {name: text(name, value) for name, value in query.items() if value is not None}


def text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} is {value}, which has no time zone; datetime.now(timezone.utc) has one")
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(text(name, v) for v in value)
    if isinstance(value, Mapping):
        return json.dumps(value)
    return str(value)


def posted(body: Mapping[str, Any]) -> dict[str, Any] | None:
    return {name: value for name, value in body.items() if value is not None} or None


def refusal(response: httpx2.Response) -> APIError:
    """The error that an answer is which was read whole."""
    try:
        body = json.loads(response.content)
    except ValueError:
        body = None
    return error_of(response.status_code, body, response.headers.get("Retry-After"))


def simulated(response: httpx2.Response) -> bool:
    return bool(response.headers.get("X-Data-Source") == "simulated")


def within(body: Any, path: Sequence[str]) -> list[Any]:
    for step in path:
        body = body.get(step) or {}
    return list(body)


class Place:
    """Where a reader of pages is. The last page is one that is not full."""

    def __init__(self, place: str, size: tuple[str, int]):
        self._place, self._size, self._rows = place, size, size[1]
        self._next = 1 if place == "page" else 0
        self.more = True

    @property
    def query(self) -> dict[str, int]:
        return {self._size[0]: self._rows, self._place: self._next}

    def took(self, page: list[Any]) -> list[Any]:
        self.more = len(page) == self._rows
        self._next += 1 if self._place == "page" else len(page)
        return page
