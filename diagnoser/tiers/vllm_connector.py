"""Is any KV connector behind a vLLM engine? The counters of the look-ups tell, whatever the backend.

vllm:external_prefix_cache_queries_total is on every page from 0.12 on and moves at each admission if and only if a
connector was asked (vllm/v1/core/sched/scheduler.py): 0 after prompts were served proves that there is none. When it
moves, the backend (LMCache, Mooncake, NIXL of a P/D pair) publishes elsewhere, and NIXL would not even be a cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Sample, TierSeries, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series, known

_HITS, _QUERIES = "vllm:external_prefix_cache_hits_total", "vllm:external_prefix_cache_queries_total"
_PROMPTS = "vllm:prompt_tokens_total"
_ELSEWHERE = "a KV connector is in use, but its backend publishes elsewhere (LMCache, Mooncake; NIXL is no cache)"


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """What the look-up counters say of any connector."""
    if engine.family != "vllm":
        return None
    series = Series(samples, ["vllm:"], "engine", engine.rank)
    configured = str(facts["kv_connector"].value) if "kv_connector" in facts else ""
    if series.has("vllm:nixl_") or "Nixl" in configured:
        return None  # a transport answers for itself: a prefill engine asks it for nothing
    queries, prompts = series.total(_QUERIES), series.total(_PROMPTS)
    counters = known({"query_tokens_total": queries, "hit_tokens_total": series.total(_HITS)})
    if queries is None:
        return TierState("connector", None, reason=f"{_QUERIES} is not on the page (first in vLLM 0.12)")
    if queries.value > 0:
        return TierState("connector", None, counters=counters, reason=_ELSEWHERE)
    if configured:
        return TierState("connector", None, reason=f"{configured} is configured and publishes elsewhere (--l2 URL)")
    if prompts is not None and prompts.value > 0:
        return TierState("none", False, reason=f"{_QUERIES} is 0 although prompts were served: no KV connector")
    return TierState("connector", None, reason="no prompt was served yet, so no connector can have been asked")


_SERVED = {
    "l2_asked_total": (TierSeries(_QUERIES),),
    "l2_hit_tokens_total": (TierSeries(_HITS),),
    "l2_query_tokens_total": (TierSeries(_QUERIES),),
}
TIER = Tier("vllm_connector", frozenset({_HITS, _QUERIES, _PROMPTS}), read, "vllm", _SERVED)
