"""SGLang's device pools in tokens: exact from 0.5.11, used only from 0.5.6, an estimate before.

used = capacity - available - evictable (pool_stats_observer.py), so it holds what requests, sessions, transfers and
leaked pages hold. The gauge max_total_num_tokens can differ from the sum where KV is sharded over pages.
"""

from __future__ import annotations

from collections.abc import Callable

from diagnoser.engines.page import Page, Scope
from diagnoser.engines.sglang_names import CAPACITY, INFO
from diagnoser.model import BadSeries, PoolState, Quantity, Range

_TOLERANCE_TOKENS = 1.0
_MIN_USAGE = 0.1
"""Below this a usage rounded to 0.01 says nothing about the capacity (5 % at 0.1)."""
_HUNDREDTH = 1e-9
_SPLIT = "this version does not say which part of the free tokens is evictable cache (kv_evictable_tokens, 0.5.11)"
_NO_CAPACITY = "this version exports no pool size (max_total_num_tokens, 0.5.6)"

Read = Callable[[str], float | None]


def reader(page: Page, scope: Scope) -> Read:
    """A rank's value of a gauge, None where it has no valid one."""

    def read(metric: str) -> float | None:
        values = [sample.value for sample in page.named(metric) if scope.mine(sample.labels) and sample.value >= 0]
        return max(values, default=None)

    return read


def capacity_of(page: Page, read: Read) -> float | None:
    """The pool size of a rank: its gauge, or pages x page size of 0.5.9 and 0.5.10."""
    size = read(CAPACITY)
    if size is not None:
        return size
    for sample in page.named(INFO):
        pages, page_size = sample.labels.get("num_pages", ""), sample.labels.get("page_size", "")
        if pages.isdigit() and page_size.isdigit():
            return float(int(pages) * int(page_size))
    return None


def kv_pool(page: Page, read: Read, ratio: float | None, cold: bool) -> tuple[PoolState, tuple[BadSeries, ...]]:
    """The pool of full attention."""
    capacity = capacity_of(page, read)
    if cold:
        return PoolState(capacity, reason="not born yet: no request since the start"), ()
    used, evictable, available = (read(f"sglang:kv_{part}_tokens") for part in ("used", "evictable", "available"))
    if used is not None and evictable is not None and available is not None:
        return _exact(used, evictable, available, capacity)
    used = read("sglang:num_used_tokens")
    return _partial(used, capacity, ratio), ()


def _exact(
    used: float, evictable: float, available: float, capacity: float | None
) -> tuple[PoolState, tuple[BadSeries, ...]]:
    total = used + evictable + available
    if capacity is None or abs(total - capacity) <= _TOLERANCE_TOKENS:
        return PoolState(total, used, evictable, available), ()
    reason = f"is {capacity:g}, but used, evictable and available add up to {total:g}, which is used"
    return PoolState(total, used, evictable, available), (BadSeries(CAPACITY, reason),)


def _partial(used: float | None, capacity: float | None, ratio: float | None) -> PoolState:
    if capacity is None:
        if not used or ratio is None or ratio < _MIN_USAGE:
            return PoolState(None, used, reason=_NO_CAPACITY)
        rounded = abs(ratio * 100 - round(ratio * 100)) < _HUNDREDTH
        capacity = used / ratio
        note = "pool size is num_used_tokens / token_usage"
        if rounded:
            off = 0.5 / ratio
            note = f"pool size is num_used_tokens / token_usage, within {off:.0f} % because the ratio is rounded"
        return _with_ranges(used, capacity, f"{note}; {_SPLIT}")
    if used is None:
        used = None if ratio is None else ratio * capacity
    if used is None:
        return PoolState(capacity, reason="no valid usage on this page")
    return _with_ranges(used, capacity, _SPLIT)


def _with_ranges(used: float, capacity: float, reason: str) -> PoolState:
    free = max(0.0, capacity - used)
    rest: Quantity = Range(0.0, free) if free > 0 else 0.0
    return PoolState(capacity, used, rest, rest, reason)


def other_pools(read: Read) -> tuple[PoolState, ...]:
    """Sliding-window and state pools, only where they exist: all-zero series mean the model has none."""
    return tuple(
        pool
        for pool in (_second("swa", read, "swa", ""), _second("mamba", read, "state", "in state slots, not tokens"))
        if pool is not None
    )


def _second(prefix: str, read: Read, name: str, reason: str) -> PoolState | None:
    used, evictable, available = (read(f"sglang:{prefix}_{part}_tokens") for part in ("used", "evictable", "available"))
    if used is None or evictable is None or available is None or used + evictable + available <= 0:
        return None
    return PoolState(used + evictable + available, used, evictable, available, reason, name)
