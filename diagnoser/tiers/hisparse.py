"""HiSparse: the host pool is the KV pool, so it governs admission and no idle rule applies.

Source: vllm/v1/core/kv_cache_utils.py (min of device and host concurrency), sglang/srt/mem_cache/allocator/hisparse.py.
vLLM's host_cache_usage_perc counts what requests hold, evictable cache as free: a gauge of the L1 kind. SGLang shows
it only in its logs and in /server_info.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Sample, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series, known

_P = "vllm:hisparse_"
_USAGE, _LOADED, _PENDING = (
    f"{_P}host_cache_usage_perc",
    f"{_P}host_to_device_bytes_total",
    f"{_P}pending_page_transfers",
)
_REASON = "HiSparse: the host pool is the KV pool and bounds concurrency"


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """HiSparse by vLLM's series or by SGLang's flag."""
    if engine.family == "sglang":
        on = "enable_hisparse" in facts and facts["enable_hisparse"].value is True
        return TierState("hisparse", True, governs_admission=True, reason=_REASON) if on else None
    series = Series(samples, ["vllm:"], "engine", engine.rank)
    if engine.family != "vllm" or not series.has(_P):
        return None
    counters = known({"loaded_total": series.total(_LOADED)})
    gauges = known({"held_ratio": series.highest(_USAGE), "pending_pages": series.highest(_PENDING)})
    return TierState("hisparse", True, governs_admission=True, counters=counters, gauges=gauges, reason=_REASON)


TIER = Tier("hisparse", frozenset({_USAGE, _LOADED, _PENDING}), read)
