"""Where the two evaluators differ, by more than the way a server reads pages explains (see oracle.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from story import BOOK

from diagnoser.signals.base import Signal, scalar, signals

from .oracle import Look, Said

EXACT = 1e-4
"""Both compute with doubles; VictoriaMetrics rounds to decimals, which shows in differences."""
OFF_THE_GRID = 0.005
"""Python divides by the time between real stamps, a query by whole steps: pages are up to 0.15 s off in 30 s."""
THRESHOLDS = {"ttft_silent_seconds": "silent_seconds", "idle_used_seconds": "idle_used_seconds_max"}
"""A query tells only whether these reach a threshold, by pages at least that far apart and at most two steps more."""
BY_TIME = frozenset({"seconds", "1/s", "units/s", "tokens/s", "requests/s", "bytes/s", "token-seconds"})
OVER_TIME = frozenset({"used_trend_fit_ratio", "prefill_occupancy_requests"})
FLOWS = frozenset(
    {"arrival_rate", "rho", "waiting_ahead_requests", "ttft_queue_age_estimate_seconds", "first_tokens_growth_ratio"}
)
"""Python divides all by the time between its first and last page; a query what counters grew by the window, and how
much longer a queue became by the window less one step.
"""


@dataclass(frozen=True)
class Difference:
    """One signal (or verdict) of one rank at one instant. `what`: "unknown" to PromQL, "extra", or another "value"."""

    signal: str
    what: str
    family: str
    product: str
    recording: str
    at: float
    rank: str
    got: float | str | None
    want: object
    begun: bool = False
    """The target was not scraped yet when the window began."""

    def __str__(self) -> str:
        place = f"{self.product}, {self.recording} rank {self.rank} at {self.at:.1f}"
        return f"{self.signal} {self.what}: {self.got} for {self.want} ({place})"


def compared(one: Said, found: Mapping[str, float | None], look: Look) -> Iterator[Difference]:
    """Every signal of one rank."""
    engine = one.pages.engine
    for signal in signals():
        got, known = found.get(signal.name), one.values(signal.name)
        what = _what(signal, got, known, one, look)
        if what:
            name = engine.family, look.product, engine.target, look.at, engine.rank
            yield Difference(signal.name, what, *name, got, known, begun=not one.filled)


def _what(signal: Signal, got: float | None, known: list[float | None], one: Said, look: Look) -> str:
    values = [value for value in known if value is not None]
    if got is None:
        return "unknown" if len(values) == len(known) else ""
    if not values:
        return "extra"
    if signal.name in THRESHOLDS:
        limit = scalar(BOOK.params(), THRESHOLDS[signal.name])
        right = max(values) >= limit if got else min(values) < limit + 2 * look.step
    elif signal.name == "scrape_interval_seconds":
        right = look.seconds / (len(one.pages.snapshots) + 1) <= got <= look.seconds / (len(one.pages.snapshots) - 1)
    else:
        slack = _slack(signal, look) * max(abs(v) for v in values) + 1e-9
        right = min(values) - slack <= got <= max(values) + slack
    return "" if right else "value"


def _slack(signal: Signal, look: Look) -> float:
    if signal.name in FLOWS:
        return look.step / look.seconds
    return OFF_THE_GRID if signal.unit in BY_TIME or signal.name in OVER_TIME else EXACT
