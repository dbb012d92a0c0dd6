from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import APIError, RateLimited, Unavailable


@dataclass(frozen=True)
class Retry:
    """How often and how long a call is made again: after 429 and 503 when the server says it may, and when the connection fails. All
    operations only read, so a second call harms nothing.

    ``attempts`` counts the first call too; 1 is never again. ``longest`` is the most seconds that a call waits in all: a wait that does not
    fit into it is not begun.
    """

    attempts: int = 5
    longest: float = 30.0

    def wait(self, error: Exception, attempt: int, waited: float) -> float | None:
        """Seconds before the next attempt, attempt being the number of those made; None if there is no other."""
        if attempt >= self.attempts or not again(error):
            return None
        seconds = pause(error, attempt)
        return seconds if waited + seconds <= self.longest else None


def again(error: Exception) -> bool:
    """Whether the same call may succeed later."""
    return not isinstance(error, APIError) or isinstance(error, (RateLimited, Unavailable))


def pause(error: Exception, attempt: int) -> float:
    """Seconds to wait: as the server says, else longer each time. Spread, so that all who were refused do not come back at once."""
    if isinstance(error, APIError) and error.retry_after is not None:
        return error.retry_after + random.random() / 4
    return float(min(8.0, 0.2 * 2 ** min(attempt, 10)) * (0.75 + random.random() / 2))
