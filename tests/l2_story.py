"""A window of two pages that differ only in what they say of the host tier."""

from __future__ import annotations

from story import BOOK, START

from diagnoser.model import Diagnosis, EngineId, L2State, PoolState, Reading, Snapshot, TierState, Window
from diagnoser.pipeline import diagnose

ENGINE = EngineId("vllm", "test:8000")


def told(
    *pages: TierState,
    every: float = 30.0,
    queue: dict[str, float] | None = None,
    counters: tuple[dict[str, float], ...] = (),
) -> Diagnosis:
    """What follows from these pages; `queue` holds gauges beside running and waiting, `counters` those of each page."""
    gauges = {"running_requests": 0.0, "waiting_requests": 0.0, **(queue or {})}
    snapshots = []
    for i, page in enumerate(pages):
        here = {**gauges, **(counters[i] if counters else {})}
        readings = {name: Reading(value, name) for name, value in here.items()}
        snapshots.append(Snapshot(ENGINE, START + i * every, readings, {}, {}, PoolState(), l2=page))
    end = START + (len(pages) - 1) * every
    window = Window(ENGINE, end, max(1.0, end - START), tuple(snapshots))
    return diagnose([window], BOOK)[0]


def state_of(first: TierState, last: TierState | None = None, seconds: float = 30.0) -> tuple[L2State, str]:
    """The state of the host tier over a window from `first` to `last`, or on one page alone."""
    found = told(first, *([last] if last is not None else []), every=seconds)
    return found.verdict.l2, found.verdict.l2_reason
