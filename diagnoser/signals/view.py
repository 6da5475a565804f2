"""One window of one engine rank, with the questions that every signal asks: last value, increase,
histogram of the window.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from diagnoser.model import Fact, Histogram, Reading, Snapshot, Window


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a signal has no value."""

    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """A signal's value and the series it came from."""

    value: float
    series: tuple[str, ...] = ()


Result = Found | Missing


class View:
    """A Window with its snapshots' readings arranged for reading over time. Computes lazily."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.snapshots = window.snapshots
        self.memo: dict[str, Any] = {}
        """What a signal module computed for all intervals at once, kept for the next interval."""

    # ---- facts

    def fact(self, name: str) -> Fact | None:
        """A known fact, or None."""
        return self.window.facts.get(name)

    def number(self, name: str) -> float | None:
        """A known numeric fact, or None."""
        fact = self.window.facts.get(name)
        if fact is None or isinstance(fact.value, str):
            return None
        return float(fact.value)

    # ---- time

    @cached_property
    def seconds(self) -> float:
        """Time between the first and the last page."""
        return self.snapshots[-1].at - self.snapshots[0].at if len(self.snapshots) > 1 else 0.0

    def pair(self, i: int) -> tuple[Snapshot, Snapshot]:
        """The pages at both ends of interval i."""
        return self.snapshots[i], self.snapshots[i + 1]

    def pairs(self) -> Iterator[tuple[Snapshot, Snapshot]]:
        """Consecutive snapshots: the intervals of the window."""
        return zip(self.snapshots, self.snapshots[1:], strict=False)

    # ---- gauges

    def why_missing(self, name: str) -> Missing:
        """The adapter's reason why `name` is not there."""
        if not self.snapshots:
            return Missing("no page in the window")
        return Missing(self.snapshots[-1].missing.get(name, f"no {name} on the page"))

    def values(self, name: str) -> list[tuple[float, float]]:
        """(time, value) of every page that has the reading."""
        return [(s.at, r.value) for s in self.snapshots if (r := s.readings.get(name)) is not None]

    def last(self, name: str) -> Reading | None:
        """The newest reading of that name in the window."""
        return next((r for s in reversed(self.snapshots) if (r := s.readings.get(name)) is not None), None)

    def gauge(self, name: str, pick: Callable[[list[float]], float]) -> Result:
        """`pick` (min, max, mean, ...) over all values of a gauge."""
        last, values = self.last(name), [v for _, v in self.values(name)]
        return Found(pick(values), (last.series,)) if last is not None and values else self.why_missing(name)

    # ---- counters

    def increase(self, name: str) -> Result:
        """How much a counter grew over the window; a restart counts from zero again. Needs two pages."""
        last, values = self.last(name), [v for _, v in self.values(name)]
        if last is None:
            return self.why_missing(name)
        if len(values) < 2:
            return Missing("needs two pages: a counter says nothing at one instant")
        return Found(sum(grown(a, b) for a, b in itertools.pairwise(values)), (last.series,))

    def rate(self, name: str) -> Result:
        """Increase a second."""
        grew = self.increase(name)
        if isinstance(grew, Missing):
            return grew
        times = [t for t, _ in self.values(name)]
        return Found(grew.value / (times[-1] - times[0]), grew.series)

    # ---- histograms

    def histogram(self, name: str) -> Histogram | Missing:
        """The observations made inside the window, restart-safe. Missing if the family or a second page is."""
        key = f"histogram {name}"
        if key not in self.memo:
            self.memo[key] = self._histogram(name)
        known: Histogram | Missing = self.memo[key]
        return known

    def _histogram(self, name: str) -> Histogram | Missing:
        found = [h for s in self.snapshots if (h := s.histograms.get(name)) is not None]
        if not found:
            return self.why_missing(name)
        if len(found) < 2:
            return Missing("needs two pages: a histogram says nothing of an instant")
        return _grown_histogram(found)

    def observed_mean(self, name: str) -> Result:
        """Mean of a histogram's observations inside the window."""
        histogram = self.histogram(name)
        if isinstance(histogram, Missing):
            return histogram
        if histogram.count <= 0:
            return Missing(f"nothing observed in {histogram.series} in this window")
        return Found(histogram.sum / histogram.count, (histogram.series,))

    def lifetime(self, name: str) -> Histogram | Missing:
        """The newest cumulative histogram: every observation since the process started."""
        found = next((h for s in reversed(self.snapshots) if (h := s.histograms.get(name)) is not None), None)
        return found if found is not None else self.why_missing(name)


def grown_between(a: Snapshot, b: Snapshot, name: str) -> float | None:
    """Increase of a counter between two pages, or None if either lacks it."""
    before, after = a.value(name), b.value(name)
    return None if before is None or after is None else grown(before, after)


def grown(before: float, after: float) -> float:
    """Increase of a counter between two pages; after a restart everything it shows is new."""
    return after - before if after >= before else after


def _grown_histogram(found: list[Histogram]) -> Histogram:
    """Last less first; after a restart (fewer observations, other edges) all that a process shows is new."""
    starts = [b for a, b in itertools.pairwise(found) if b.edges != a.edges or b.count < a.count]
    ends = [a for a, b in itertools.pairwise(found) if b.edges != a.edges or b.count < a.count]
    first, last = found[0], found[-1]
    if not starts:
        counts = tuple(y - x for x, y in zip(first.counts, last.counts, strict=True))
        return Histogram(last.edges, counts, last.sum - first.sum, last.series)
    pieces = [_grown_histogram([first, ends[0]]), *ends[1:], last]
    same = [piece for piece in pieces if piece.edges == last.edges]
    counts = tuple(sum(column) for column in zip(*(piece.counts for piece in same), strict=True))
    return Histogram(last.edges, counts, sum(piece.sum for piece in same), last.series)


def quantile_bucket(histogram: Histogram, q: float) -> tuple[float, float] | None:
    """The bucket (low, high] that holds the q-quantile; None without observations. Never finer than the buckets."""
    if histogram.count <= 0:
        return None
    rank, low = q * histogram.count, 0.0
    for edge, count in zip(histogram.edges, histogram.counts, strict=True):
        if count >= rank:
            return low, edge
        low = edge
    return low, float("inf")


def mean(values: list[float]) -> float:
    """Arithmetic mean of a non-empty list."""
    return sum(values) / len(values)
