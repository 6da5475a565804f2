"""vLLM's SimpleCPUOffloadConnector (0.31 on): capacity is a label, what is resident is not exported.

`used_blocks` counts blocks pinned by transfers or hits, evictable cache not (vllm/v1/simple_kv_offload/metrics.py).
`save_outcomes` classifies the boundary stores of the eager mode only, so it bounds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Sample, TierSeries, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series, known

_P = "vllm:simple_kv_offload_"
_INFO, _OUTCOMES = f"{_P}info", f"{_P}save_outcomes_total"
_LOADED, _PINNED, _PENDING = f"{_P}load_blocks_total", f"{_P}used_blocks", f"{_P}pending_store_blocks"
_HITS, _QUERIES = "vllm:external_prefix_cache_hits_total", "vllm:external_prefix_cache_queries_total"
_NO_FILL = "vLLM does not export what is resident: used_blocks counts pinned blocks, save_outcomes only boundary stores"


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """The simple tier of one engine, known by its info series."""
    if engine.family != "vllm":
        return None
    series = Series(samples, ["vllm:"], "engine", engine.rank)
    if not series.has(_P):
        return None
    sizes = [sample.labels.get("capacity_blocks", "") for sample in series.of(_INFO)]
    counters = {
        "stored_total": series.total(_OUTCOMES, outcome="stored"),
        "loaded_total": series.total(_LOADED, phase="completed") or series.total(_LOADED, phase=""),
        "dropped_total": series.total(_OUTCOMES, outcome="dropped_cpu_full"),
        "hit_tokens_total": series.total(_HITS),
        "query_tokens_total": series.total(_QUERIES),
    }
    gauges = {"pinned_blocks": series.highest(_PINNED), "pending_store_blocks": series.highest(_PENDING)}
    capacity = next((float(size) for size in sizes if size.isdigit()), None)
    return TierState(
        "vllm_simple", True, "blocks", capacity, counters=known(counters), gauges=known(gauges), reason=_NO_FILL
    )


_SERVED = {
    "l2_marker": (TierSeries(_INFO), TierSeries(_PINNED)),
    "l2_stored_total": (TierSeries(_OUTCOMES, {"outcome": "stored"}, "sum"),),
    "l2_loaded_total": (
        TierSeries(_LOADED, {"phase": "completed"}, "sum"),
        TierSeries(_LOADED, {"phase": ""}, "sum"),
    ),
    "l2_dropped_total": (TierSeries(_OUTCOMES, {"outcome": "dropped_cpu_full"}, "sum"),),
}
TIER = Tier(
    "vllm_simple", frozenset({_INFO, _OUTCOMES, _LOADED, _PINNED, _PENDING, _HITS, _QUERIES}), read, "vllm", _SERVED
)
