"""LMCache in the engine's process (lmcache:*, 0.5.6): bytes resident a worker, no capacity on any page.

retrieve_hit_rate is 1 when idle and is not read. Several gauges end in _total or _count; put_failed_count is a gauge.
Workers have a pool each, so bytes add up; tokens are the same on every worker. The capacity is max_local_cpu_size
per worker: a fact (l2_capacity_bytes, of the whole engine). Counters can go backwards (POST /metrics/reset).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Sample, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series, added, fact_number, known

_P = "lmcache:"
_RESIDENT = f"{_P}local_cache_usage"
_STORED, _LOADED = f"{_P}num_stored_tokens_total", f"{_P}num_hit_tokens_total"
_EVICTED, _REFUSED = f"{_P}local_cpu_evict_keys_count_total", f"{_P}local_cpu_evict_failed_count_total"
_HITS, _QUERIES = f"{_P}num_lookup_hits_total", f"{_P}num_lookup_tokens_total"
_FAILED = (f"{_P}put_failed_count", f"{_P}get_blocking_failed_count")
_SECONDS = f"{_P}retrieve_to_gpu_time"
_SLOW = (f"{_P}num_slow_retrieval_by_time_total", f"{_P}num_slow_retrieval_by_speed_total")


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """LMCache of the workers on the page. Series name no data-parallel rank: they are of all engines of the page."""
    series = Series(samples, [_P])
    resident, capacity = series.total(_RESIDENT), fact_number(facts, "l2_capacity_bytes")
    if resident is None and series.highest(_STORED) is None:
        return None
    counters = {
        "stored_total": series.highest(_STORED),
        "loaded_total": series.highest(_LOADED),
        "evicted_total": series.total(_EVICTED),
        "dropped_total": series.total(_REFUSED),
        "errors_total": added(*(series.total(metric) for metric in _FAILED)),
        "hit_tokens_total": series.highest(_HITS),
        "query_tokens_total": series.highest(_QUERIES),
        "load_seconds_total": series.highest(f"{_SECONDS}_sum"),
        "loads_total": series.highest(f"{_SECONDS}_count"),
        "slow_loads_total": added(*(series.highest(metric) for metric in _SLOW)),
    }
    return TierState(
        "lmcache",
        True,
        "bytes",
        capacity,
        resident.value if resident else None,
        resident.value if resident else None,
        counters=known(counters),
        gauges=known({"resident": resident}),
        reason="" if capacity else "LMCache does not export its capacity (max_local_cpu_size, fact l2_capacity_bytes)",
    )


TIER = Tier(
    "lmcache",
    frozenset({_RESIDENT, _STORED, _LOADED, _EVICTED, _REFUSED, _HITS, _QUERIES, _SECONDS, *_FAILED, *_SLOW}),
    read,
)
