"""How often: back-off after failures, and the rate of a receiver."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from diagnoser.service.notify.fields import Rate


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds before the next attempt: doubled each time, with jitter, at most `longest`. There is no last attempt."""

    first: float = 1.0
    longest: float = 300.0

    def after(self, failures: int) -> float:
        """Between half and all of the time, so that many do not come back at once."""
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 60)) * random.uniform(0.5, 1.0)


BACKOFF = Backoff()


class Bucket:
    """A rate: `count` at once, then one every `seconds / count`."""

    def __init__(self, rate: Rate | None, now: float) -> None:
        self._rate, self._at = rate, now
        self._tokens = float(rate.count) if rate else math.inf

    def wait(self, now: float) -> float:
        """Seconds until one may pass; 0 if it may now."""
        if self._rate is None:
            return 0.0
        speed = self._rate.count / self._rate.seconds
        self._tokens = min(self._rate.count, self._tokens + max(0.0, now - self._at) * speed)
        self._at = now
        return 0.0 if self._tokens >= 1 else (1 - self._tokens) / speed

    def take(self) -> None:
        """One passes."""
        self._tokens -= 1

    def passed(self, count: int) -> None:
        """So many passed lately, before a restart."""
        self._tokens = max(0.0, self._tokens - count)
