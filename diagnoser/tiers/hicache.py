"""SGLang HiCache: host pool in tokens. Used is everything resident, so half empty is visible.

Source: sglang/srt/managers/scheduler_components/metrics_reporter.py, metrics_collector.py of 0.5.23. Gauges since
0.5.10, load_back since 0.5.6, backup and dropped since 0.5.18. Counters are born with their first event.
A hybrid model has a second host pool, of states; a prefix needs both, so the fuller one is the tier. The host pool of a
sliding window has no gauge. Storage (L3) behind it shows in what it could not fetch, and for want of which pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Reading, Sample, TierSeries, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series, added, known

_USED, _TOTAL = "sglang:hicache_host_used_tokens", "sglang:hicache_host_total_tokens"
_LOADED, _STORED = "sglang:load_back_tokens_total", "sglang:hicache_backup_tokens_total"
_DROPPED = "sglang:hicache_dropped_tokens_total"
_USED_STATES, _TOTAL_STATES = "sglang:hicache_host_mamba_used_states", "sglang:hicache_host_mamba_total_states"
_UNFULFILLED = "sglang:storage_prefetch_unfulfilled_tokens_total"
_DEFERRED = "sglang:storage_prefetch_deferred_tokens_total"
_EFFECTIVE = "sglang:prefill_effective_tokens_total"
_LOAD_BYTES, _LOAD_SECONDS = "sglang:load_back_bytes_total", "sglang:load_back_duration_seconds"
_CACHE_TYPE = "sglang:eviction_duration_seconds"
_FULL_USAGE = "sglang:full_token_usage"
_KV = ("", "kv")
_IMPOSSIBLE_FILL = 1.02


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """HiCache of one rank; on a warm page from 0.5.10 on, no gauge means no HiCache."""
    if engine.family != "sglang":
        return None
    series = Series(samples, ["sglang:"], "dp_rank", engine.rank)
    capacity = series.highest(_TOTAL)
    if capacity is None or not capacity.value:
        return _without_gauges(series)
    counters = _counters(Series(samples, ["sglang:"]), series)
    if _text(facts, "l2_memory_mode") == "buffer_only":
        reason = "buffer_only: the host pool is staging for storage, its fill says nothing"
        return TierState("hicache", True, "tokens", capacity.value, counters=counters, reason=reason)
    used = series.highest(_USED)
    if used is not None and used.value > capacity.value * _IMPOSSIBLE_FILL:
        reason = f"{_USED} ({used.value:g}) is above {_TOTAL} ({capacity.value:g})"
        return TierState("hicache", True, "tokens", None, counters=counters, reason=reason)
    states, room = series.highest(_USED_STATES), series.highest(_TOTAL_STATES)
    unit = "tokens"
    if used and states and room and room.value and states.value / room.value > used.value / capacity.value:
        used, capacity, unit = states, room, "states"
    resident = None if used is None else used.value
    gauges = known({"capacity": capacity, "resident": used})
    return TierState("hicache", True, unit, capacity.value, resident, resident, counters=counters, gauges=gauges)


def _counters(cache: Series, rank: Series) -> dict[str, Reading]:
    """Cache counters repeat one number over TP ranks, hence the highest, of all replicas; hits are of the rank."""
    modern = bool(rank.of(_EFFECTIVE))
    stored = cache.highest(_STORED, pool=_KV)
    dropped = added(
        cache.highest(_DROPPED, reason="host_pressure", pool=_KV), cache.highest(_UNFULFILLED, reason="host_capacity")
    )
    lagged = cache.highest(_DROPPED, reason="write_through_unbacked_eviction", pool=_KV)
    return known(
        {
            "stored_total": stored or (_unborn(_STORED) if modern else None),
            "loaded_total": cache.highest(_LOADED, pool=_KV) or _unborn(_LOADED),
            "dropped_total": dropped or (_unborn(_DROPPED) if modern else None),
            "lagged_total": lagged or (_unborn(_DROPPED) if modern else None),
            "hit_tokens_total": rank.total(_EFFECTIVE, mode="host_hit"),
            "query_tokens_total": rank.total(_EFFECTIVE, mode=("input", "host_hit", "storage_hit")),
            "load_bytes_total": cache.total(_LOAD_BYTES),
            "load_seconds_total": cache.highest(f"{_LOAD_SECONDS}_sum"),
            "loads_total": cache.highest(f"{_LOAD_SECONDS}_count"),
            "l1_refused_total": added(
                cache.highest(_UNFULFILLED, reason="device_capacity"),
                cache.highest(_DEFERRED, reason="device_capacity"),
            ),
        }
    )


def _unborn(metric: str) -> Reading:
    return Reading(0.0, f"{metric} (not born yet)")


def _without_gauges(series: Series) -> TierState | None:
    kinds = {sample.labels.get("cache_type", "") for sample in series.of(f"{_CACHE_TYPE}_count")}
    if any("LMC" in kind for kind in kinds):
        return TierState("lmcache", True, reason="LMCache inside SGLang publishes nothing on this page")
    loaded = series.highest(_LOADED, pool=_KV)
    if loaded is not None or any(kind.startswith("Hi") for kind in kinds):
        counters = known({"loaded_total": loaded})
        reason = "this version does not export the host pool (hicache_host_used_tokens, 0.5.10)"
        return TierState("hicache", True, "tokens", counters=counters, reason=reason)
    if series.of(_FULL_USAGE):
        return TierState("none", False, reason=f"{_TOTAL} is not on the page of a running engine: no HiCache")
    return TierState("hicache", None, "tokens", reason="HiCache shows itself from SGLang 0.5.10 on, once something ran")


def _text(facts: Mapping[str, Fact], name: str) -> str:
    return str(facts[name].value) if name in facts else ""


TIER = Tier(
    "hicache",
    frozenset(
        {_USED, _TOTAL, _USED_STATES, _TOTAL_STATES, _LOADED, _STORED, _DROPPED, _UNFULFILLED, _DEFERRED, _EFFECTIVE}
        | {_LOAD_BYTES, _LOAD_SECONDS, _CACHE_TYPE, _FULL_USAGE}
    ),
    read,
    family="sglang",
    served={
        "l2_capacity": (TierSeries(_TOTAL),),
        "l2_resident": (TierSeries(_USED),),
        "l2_none_marker": (TierSeries(_FULL_USAGE),),
        "l2_counts_drops": (TierSeries(_EFFECTIVE),),
        "l2_stored_total": (TierSeries(_STORED, {"pool": _KV}, scope="server"),),
        "l2_loaded_total": (TierSeries(_LOADED, {"pool": _KV}, scope="server"),),
        "l2_dropped_total": (TierSeries(_DROPPED, {"reason": "host_pressure", "pool": _KV}, scope="server"),),
        "l2_lagged_total": (
            TierSeries(_DROPPED, {"reason": "write_through_unbacked_eviction", "pool": _KV}, scope="server"),
        ),
        "l2_hit_tokens_total": (TierSeries(_EFFECTIVE, {"mode": "host_hit"}, "sum"),),
        "l2_query_tokens_total": (TierSeries(_EFFECTIVE, {"mode": ("input", "host_hit", "storage_hit")}, "sum"),),
        "l2_load_bytes_total": (TierSeries(_LOAD_BYTES, None, "sum", "server"),),
        "l2_load_seconds_total": (TierSeries(f"{_LOAD_SECONDS}_sum", scope="server"),),
        "l2_loads_total": (TierSeries(f"{_LOAD_SECONDS}_count", scope="server"),),
        "l2_l1_refused_total": (TierSeries(_UNFULFILLED, {"reason": "device_capacity"}, scope="server"),),
    },
)
