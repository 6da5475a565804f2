"""LMCache's multi-process server (lmcache_mp_*, 0.5.6). Its "l1" is the host pool, here L2; its "l2" is disk or remote.

It evicts at a watermark (0.8) by a fifth: full is a saw-tooth between about 0.64 and 0.8. Capacity is bytes / ratio of
each l1_tag. Counters are born with their first event; dropped events of the bus make all of them too small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Reading, Sample, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series, known

_P = "lmcache_mp_"
_BYTES, _RATIO = f"{_P}l1_memory_usage_bytes", f"{_P}l1_usage_ratio"
_STORED, _LOADED = f"{_P}l1_write_chunks_total", f"{_P}l1_read_chunks_total"
_EVICTED, _REFUSED = f"{_P}l1_evicted_chunks_total", f"{_P}l1_allocation_failure_chunks_total"
_TIMEOUTS = f"{_P}timeouts_total"
_HITS, _QUERIES = f"{_P}lookup_hit_l1_tokens_total", f"{_P}lookup_requested_tokens_total"
_REUSE, _KEPT = f"{_P}l1_chunk_evict_reuse_gap_seconds", f"{_P}l1_chunk_lifetime_seconds"
_SPEED = f"{_P}l0_l1_load_throughput_GB_per_second"
_LOST = f"{_P}event_bus_dropped_events_total"


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """The server's host pool; it serves every engine that is connected to it."""
    series = Series((sample for sample in samples if sample.name.startswith(_P)), [_P])
    if not series:
        return None
    held, capacity = series.total(_BYTES), _capacity(series)
    counters = {
        "stored_total": series.total(_STORED) or _unborn(_STORED),
        "loaded_total": series.total(_LOADED) or _unborn(_LOADED),
        "evicted_total": series.total(_EVICTED) or _unborn(_EVICTED),
        "dropped_total": series.total(_REFUSED) or _unborn(_REFUSED),
        "errors_total": series.total(_TIMEOUTS) or _unborn(_TIMEOUTS),
        "hit_tokens_total": series.total(_HITS),
        "query_tokens_total": series.total(_QUERIES),
        "evict_reuse_total": series.total(f"{_REUSE}_count"),
        "evict_reuse_seconds_total": series.total(f"{_REUSE}_sum"),
        "kept_total": series.total(f"{_KEPT}_count"),
        "kept_seconds_total": series.total(f"{_KEPT}_sum"),
    }
    speeds = series.total(f"{_SPEED}_sum")
    if speeds is not None:
        counters["load_speeds_total"] = series.total(f"{_SPEED}_count")
        counters["load_speeds_sum_total"] = Reading(speeds.value * 1e9, speeds.series)
    lost = series.total(_LOST)
    reasons = ["" if capacity else "the pool is empty, so its capacity (bytes / ratio) is not known yet"]
    reasons += ["events were dropped: its counters are too small"] if lost and lost.value else []
    resident = held.value if held else None
    return TierState(
        "lmcache_mp",
        True,
        "bytes",
        capacity,
        resident,
        resident,
        counters=known(counters),
        gauges=known({"resident": held, "lost_events": lost}),
        reason="; ".join(reason for reason in reasons if reason),
        scope="node",
    )


def _capacity(series: Series) -> float | None:
    """Added over the managers; a manager that holds nothing has a ratio of 0 and hides its size."""
    ratios = {sample.labels.get("l1_tag", ""): sample.value for sample in series.of(_RATIO)}
    held = {sample.labels.get("l1_tag", ""): sample.value for sample in series.of(_BYTES)}
    if not held or any(not ratios.get(tag) for tag in held):
        return None
    return sum(value / ratios[tag] for tag, value in held.items())


def _unborn(metric: str) -> Reading:
    return Reading(0.0, f"{metric} (not born yet)")


TIER = Tier(
    "lmcache_mp",
    frozenset(
        {_BYTES, _RATIO, _STORED, _LOADED, _EVICTED, _REFUSED, _TIMEOUTS, _HITS, _QUERIES, _REUSE, _KEPT, _SPEED, _LOST}
    ),
    read,
)
