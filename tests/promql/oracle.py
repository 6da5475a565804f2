"""What Python says of the same pages, read as a metrics server reads them.

A query sees other pages than `windows()` at the window's two ends, for three reasons that each product documents:

- Steps. A subquery looks at whole multiples of its step. It sees the newest page before each: so perhaps one page from
  before the window, not yet the newest one, and the page before a missing one twice.
- Growth, Prometheus. increase() stretches what grew between the first and the last page to the whole window, at most
  half an interval where that is further away, and never below zero (promql/functions.go, extrapolatedRate).
- Growth, VictoriaMetrics. increase() starts from the last page before the window; of a series without one from zero,
  if it is not far above its first step (app/vmselect/promql/rollup.go, rollupDelta).

Each is a window of its own here. A signal is right if it lies between the least and the most that Python says of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from story import BOOK

from diagnoser.engines.base import READINGS
from diagnoser.model import Histogram, PoolState, Reading, SignalValue, Snapshot, TierState, Window
from diagnoser.pipeline import History
from diagnoser.signals.table import evaluate
from diagnoser.signals.view import View, grown

Growth = Callable[[list[tuple[float, float]]], float]
"""How much a counter grew, by a server: of its (time, value) pairs, the page before the window first."""
COUNTERS = frozenset(name for name, meaning in READINGS.items() if meaning.endswith("(counter)"))


@dataclass(frozen=True)
class Look:
    """A window, and how a server of `product` steps through it."""

    product: str
    at: float
    seconds: float
    step: float


@dataclass(frozen=True)
class Said:
    """What Python says of one rank: of its own pages, and of all that the server may have looked at."""

    pages: Window
    filled: bool
    rows: tuple[Mapping[str, SignalValue], ...]

    def values(self, name: str) -> list[float | None]:
        """The signal, of Python's own pages first."""
        return [row[name].value for row in self.rows]


def said(history: History, look: Look) -> Iterator[Said]:
    """A rank each. `filled`: there was a page before the window, too."""
    longer = {w.engine.rank: w for w in history.windows(look.at, look.seconds + 2 * look.step)}
    for window in history.windows(look.at, look.seconds):
        before = [s for s in longer[window.engine.rank].snapshots if s not in window.snapshots]
        known = [window]
        if window.snapshots:
            known += _looked(window, before, look)
        rows = tuple(evaluate(View(one), BOOK.params()) for one in known)
        yield Said(window, bool(before), rows)


def _looked(window: Window, before: list[Snapshot], look: Look) -> Iterator[Window]:
    first = _before_growth(window, before[-1:], look)
    steps = list(_steps([*before, *window.snapshots], look))
    own = _with_counters(steps[1:], window.snapshots)
    for seen in (window.snapshots, own):
        grown_by_server = [replace(first, at=seen[-1].at - look.seconds)] if seen else []
        yield replace(window, snapshots=(*grown_by_server, *seen))
    yield replace(window, snapshots=own)
    yield replace(window, snapshots=tuple(steps))


def _steps(pages: list[Snapshot], look: Look) -> Iterator[Snapshot]:
    """The page that each step sees, and that of the step before the window (for growth since then)."""
    at = math.floor((look.at - look.seconds) / look.step) * look.step
    while at <= look.at:
        seen = [page for page in pages if at - 2 * look.step <= page.at <= at]
        if seen:
            yield replace(seen[-1], at=at)
        at += look.step


def _with_counters(steps: list[Snapshot], pages: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """Gauges as the steps see them, counters of the window's own pages."""
    if not steps:
        return ()
    counted = [pages[0], *(page if page.at > pages[0].at else pages[0] for page in steps[1:-1]), pages[-1]]
    return tuple(_merged(gauges, counters) for gauges, counters in zip(steps, counted, strict=False))


def _merged(gauges: Snapshot, counters: Snapshot) -> Snapshot:
    readings = {n: r for n, r in gauges.readings.items() if n not in COUNTERS}
    counted = {n: r for n, r in counters.readings.items() if n in COUNTERS}
    return replace(gauges, readings={**readings, **counted}, histograms=counters.histograms, l2=counters.l2)


# ---------------------------------------------------------------- growth


def _before_growth(window: Window, before: list[Snapshot], look: Look) -> Snapshot:
    """A page at the window's start that has only counters, so low that they grow by what the server says."""

    def lower(value_of: Callable[[Snapshot], float | None]) -> float | None:
        inside = [(page.at, value) for page in window.snapshots if (value := value_of(page)) is not None]
        if not inside:
            return None
        earlier = [value for page in before if (value := value_of(page)) is not None]
        return inside[0][1] - (_growth(inside, earlier, look) - _seen(inside))

    last = window.snapshots[-1]
    readings = {
        name: Reading(value, reading.series)
        for name, reading in last.readings.items()
        if name in COUNTERS and (value := lower(lambda s, n=name: s.value(n))) is not None  # type: ignore[misc]
    }
    histograms = {n: h for n in last.histograms if (h := _histogram(n, last, lower)) is not None}
    return Snapshot(last.engine, 0.0, readings, histograms, {}, PoolState(), l2=_tier(last.l2, lower))


def _histogram(name: str, last: Snapshot, lower: Callable[..., float | None]) -> Histogram | None:
    known = last.histograms[name]
    counts = [
        lower(lambda s, i=i: None if (h := s.histograms.get(name)) is None else h.counts[i])
        for i in range(len(known.counts))
    ]
    total = lower(lambda s: None if (h := s.histograms.get(name)) is None else h.sum)
    if total is None or None in counts:
        return None
    return Histogram(known.edges, tuple(c for c in counts if c is not None), total, known.series)


def _tier(last: TierState | None, lower: Callable[..., float | None]) -> TierState | None:
    if last is None:
        return None
    counters = {}
    for name, reading in last.counters.items():
        value = lower(lambda s, n=name: r.value if s.l2 and (r := s.l2.counters.get(n)) else None)
        if value is not None:
            counters[name] = Reading(value, reading.series)
    return replace(last, counters=counters, gauges={}, at=None)


def _growth(inside: list[tuple[float, float]], earlier: list[float], look: Look) -> float:
    """increase() of that product over the window; `earlier` is the value on the page before, if there is one."""
    seen, first = _seen(inside), inside[0][1]
    if look.product == "victoria":
        return seen + (grown(earlier[-1], first) if earlier else _born(inside))
    if len(inside) < 2:
        return 0.0
    span = inside[-1][0] - inside[0][0]
    return seen * _stretched(inside, seen, span, look) / span


def _seen(inside: list[tuple[float, float]]) -> float:
    return sum(grown(a, b) for (_, a), (_, b) in pairwise(inside))


def _born(inside: list[tuple[float, float]]) -> float:
    """What VictoriaMetrics adds for a series that it sees for the first time."""
    step = inside[1][1] - inside[0][1] if len(inside) > 1 else 0.0
    return inside[0][1] if abs(inside[0][1]) < 10 * (abs(step or 10.0) + 1) else 0.0


def _stretched(inside: list[tuple[float, float]], seen: float, span: float, look: Look) -> float:
    usual = span / (len(inside) - 1)
    to_start, to_end = inside[0][0] - (look.at - look.seconds), look.at - inside[-1][0]
    if seen > 0 and inside[0][1] >= 0:
        to_start = min(to_start, span * inside[0][1] / seen)
    return span + sum(part if part < 1.1 * usual else usual / 2 for part in (to_start, to_end))
