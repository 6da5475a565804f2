"""Mooncake store: the master's page is a pool of the whole cluster; a vLLM page shows only its own operations.

Source: master_metric_manager.cpp, rpc_service.cpp. Evicted keys and bytes are counters without `_total`; hits are
counted in objects. The pool evicts at a high watermark, so full is below 1. The master's get and put failures also
count a key that is not there and one that is there already (any ErrorCode), so they are no sign of a broken store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Sample, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series, known

_HELD, _CAPACITY = "master_allocated_bytes", "master_total_capacity_bytes"
_EVICTED = "master_evicted_size_bytes"
_REFUSED = "master_put_start_alloc_failures_total"
_OPERATIONS, _FAILED_KEYS = (
    "vllm:mooncake_store_operation_bytes_total",
    "vllm:mooncake_store_operation_failed_keys_total",
)
_PUT, _GET = ("put", "batch_put", "save", "store"), ("get", "batch_get", "load")


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """The cluster's pool where the master's series are there, else the engine's operations on it."""
    master = Series((sample for sample in samples if sample.name.startswith("master_")), ["master_"])
    held, capacity = master.highest(_HELD), master.highest(_CAPACITY)
    if capacity is not None and capacity.value:
        counters = {
            "evicted_total": master.highest(_EVICTED),
            "dropped_total": master.highest(_REFUSED),
        }
        gauges, resident = known({"capacity": capacity, "resident": held}), held.value if held else None
        size, found = capacity.value, known(counters)
        return TierState(
            "mooncake", True, "bytes", size, resident, resident, counters=found, gauges=gauges, scope="cluster"
        )
    series = Series(samples, ["vllm:"], "engine", engine.rank)
    if not series.has("vllm:mooncake_store_"):
        return None
    counters = {
        "stored_total": series.total(_OPERATIONS, operation=_PUT),
        "loaded_total": series.total(_OPERATIONS, operation=_GET),
        "errors_total": series.total(_FAILED_KEYS),
    }
    reason = "the Mooncake master publishes fill and capacity on its own page (port 9003)"
    return TierState("mooncake", True, counters=known(counters), reason=reason, scope="cluster")


TIER = Tier("mooncake", frozenset({_HELD, _CAPACITY, _EVICTED, _REFUSED, _OPERATIONS, _FAILED_KEYS}), read)
