"""vLLM's native CPU offload (OffloadingConnector, also with secondary tiers). How full it is, is not exported.

The usage gauges are the share pinned by transfers in flight (vllm/v1/kv_offload/cpu/manager.py): 0.0 on a full idle
tier. What is resident is bounded by all bytes ever stored plus those read from secondary tiers, as long as that sum
is below the capacity. Families since 0.16; {load,store} names since 0.24 next to the old ones, which move with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Reading, Sample, TierSeries, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series, added, fact_number, known

_P = "vllm:kv_offload_"
_OLD_BYTES, _OLD_SECONDS = f"{_P}total_bytes_total", f"{_P}total_time_total"
_PINNED = ("cpu_cache_usage_perc", "cpu_cache_write_usage_perc", "cpu_cache_read_usage_perc")
_TIERING = f"{_P}tiering_"
_HITS, _QUERIES = "vllm:external_prefix_cache_hits_total", "vllm:external_prefix_cache_queries_total"
_REFUSED = (
    f"{_P}allocation_failure_total",
    f"{_TIERING}promotion_allocation_failures_total",
    f"{_TIERING}backpressure_blocks_dropped_total",
)
_FAILED = (f"{_TIERING}promotion_job_failures_total", f"{_TIERING}cascade_job_failures_total")
_READ = f"{_TIERING}read_bytes_total"
_NO_FILL = "vLLM does not export what is resident (its gauges count pinned blocks)"


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """The native tier of one engine: any of its series, or configuration that says so."""
    if engine.family != "vllm":
        return None
    series = Series(samples, ["vllm:"], "engine", engine.rank)
    configured = fact_number(facts, "kv_offloading_size") or _connector(facts) == "OffloadingConnector"
    if not series.has(_P) and not (configured and "l2_capacity_bytes" in facts):
        return None
    stored = series.total(f"{_P}store_bytes_total") or series.total(_OLD_BYTES, transfer_type="GPU_to_CPU")
    loaded = series.total(f"{_P}load_bytes_total") or series.total(_OLD_BYTES, transfer_type="CPU_to_GPU")
    seconds = series.total(f"{_P}load_time_total") or series.total(_OLD_SECONDS, transfer_type="CPU_to_GPU")
    upper = added(stored, series.total(_READ))
    counters = {
        "stored_total": stored,
        "loaded_total": loaded,
        "dropped_total": added(*(series.total(metric) for metric in _REFUSED)) or _unborn(series),
        "errors_total": added(*(series.total(metric) for metric in _FAILED)),
        "hit_tokens_total": series.total(_HITS),
        "query_tokens_total": series.total(_QUERIES),
        "load_bytes_total": loaded,
        "load_seconds_total": seconds,
    }
    gauges = {f"pinned_{name.removesuffix('_perc')}_ratio": series.highest(_P + name) for name in _PINNED}
    capacity = fact_number(facts, "l2_capacity_bytes")
    return TierState(
        "vllm_offload",
        True,
        "bytes",
        capacity,
        resident_upper=upper.value if stored and upper else None,
        counters=known(counters),
        gauges=known(gauges),
        reason=_NO_FILL if capacity else f"{_NO_FILL}, and its capacity is not known (fact l2_capacity_bytes)",
    )


def _unborn(series: Series) -> Reading | None:
    """A refusal counter has no sample before the first one; releases with the pinned gauge (0.24) have the counter."""
    known_release = series.has(_P + _PINNED[0])
    return Reading(0.0, f"{_REFUSED[0]} (not born yet)") if known_release else None


def _connector(facts: Mapping[str, Fact]) -> str:
    return str(facts["kv_connector"].value) if "kv_connector" in facts else ""


_FLAT = ("store_bytes_total", "load_bytes_total", "load_time_total", *_PINNED)
TIER = Tier(
    "vllm_offload",
    frozenset([_OLD_BYTES, _OLD_SECONDS, _READ, _HITS, _QUERIES, *_REFUSED, *_FAILED, *(_P + name for name in _FLAT)]),
    read,
    family="vllm",
    served={
        "l2_marker": (*tuple(TierSeries(f"{_P}{name}") for name in _FLAT), TierSeries(_OLD_BYTES)),
        "l2_stored_total": (
            TierSeries(f"{_P}store_bytes_total", None, "sum"),
            TierSeries(_OLD_BYTES, {"transfer_type": "GPU_to_CPU"}, "sum"),
        ),
        "l2_loaded_total": (
            TierSeries(f"{_P}load_bytes_total", None, "sum"),
            TierSeries(_OLD_BYTES, {"transfer_type": "CPU_to_GPU"}, "sum"),
        ),
        "l2_load_bytes_total": (
            TierSeries(f"{_P}load_bytes_total", None, "sum"),
            TierSeries(_OLD_BYTES, {"transfer_type": "CPU_to_GPU"}, "sum"),
        ),
        "l2_load_seconds_total": (
            TierSeries(f"{_P}load_time_total", None, "sum"),
            TierSeries(_OLD_SECONDS, {"transfer_type": "CPU_to_GPU"}, "sum"),
        ),
        "l2_dropped_total": (TierSeries(_REFUSED[0], None, "sum"),),
        "l2_counts_drops": (TierSeries(_P + _PINNED[0]),),
        "l2_read_total": (TierSeries(_READ, None, "sum"),),
    },
)
