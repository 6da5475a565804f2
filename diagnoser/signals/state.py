"""The pool at the end of the window: the three states, as ranges where the gauges leave something out."""

from __future__ import annotations

from diagnoser.model import PoolState, Quantity, Range
from diagnoser.signals.base import Params, scalar
from diagnoser.signals.room import used
from diagnoser.signals.view import View


def pool_at_end(view: View, params: Params) -> PoolState:
    """The three states now, as ranges wide enough for what the gauges leave out.

    vLLM's gauge is taken at the end of a step, after frees and before the next admission: it reads low, never high,
    so the truth lies between it and the most of the last seconds. SGLang's lags by up to a report: it lies between the
    extremes.
    """
    if not view.snapshots:
        return PoolState(reason="no page in the window")
    last = view.snapshots[-1]
    held, capacity = used(last), last.pool.capacity
    if held is None or capacity is None:
        return last.pool
    since = last.at - scalar(params, "pool_lookback_seconds")
    recent = [u for s in view.snapshots if s.at > since and (u := used(s)) is not None]
    low, high = _band(
        held,
        min(recent),
        max(recent),
        scalar(params, "pool_range_ratio") * capacity,
        end_of_step=_text(view, "gauge_timing") == "end_of_step",
    )
    evictable, available = _split(view, since, Range(capacity - high, capacity - low))
    return PoolState(capacity, _quantity(low, high), evictable, available, last.pool.reason, last.pool.name)


def _split(view: View, since: float, free: Range) -> tuple[Quantity, Quantity]:
    """Evictable and available tokens: as the engine tells them, or whatever part of `free` each may be."""
    recent = [s.pool for s in view.snapshots if s.at > since]
    if _text(view, "gauge_timing") != "end_of_step" and all(isinstance(p.evictable, float | int) for p in recent):
        return _spread([p.evictable for p in recent]), _spread([p.available for p in recent])
    if _text(view, "enable_prefix_caching").lower() in ("false", "0", "0.0"):
        return 0.0, _quantity(free.low, free.high)
    last = recent[-1].evictable
    most = min(free.high, last.high) if isinstance(last, Range) else free.high
    return _quantity(0.0, most), _quantity(0.0, free.high)


def _text(view: View, name: str) -> str:
    fact = view.fact(name)
    return "" if fact is None else str(fact.value)


def _band(held: float, low: float, high: float, width: float, *, end_of_step: bool) -> tuple[float, float]:
    if end_of_step:
        return held, min(high, held + width)
    return max(low, held - width / 2), min(high, held + width / 2)


def _quantity(low: float, high: float) -> Quantity:
    return low if high - low < 1 else Range(low, high)


def _spread(values: list[Quantity]) -> Quantity:
    numbers = [float(v) for v in values if isinstance(v, float | int)]
    return _quantity(min(numbers), max(numbers)) if numbers else None
