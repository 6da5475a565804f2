"""NIXL moves KV between engines (P/D) or to storage. It is a transport without a pool: there is nothing to be idle.

Source: vllm NixlConnector metrics (vllm:nixl_*), NIXL docs/telemetry.md (agent_*; times in microseconds). Transfers
from a prefill engine look like external prefix-cache hits of about 100 %; they are no host tier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Sample, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series

_VLLM = ("vllm:nixl_xfer_time_seconds", "vllm:nixl_bytes_transferred", "vllm:nixl_num_failed_transfers")
_AGENT = ("agent_tx_bytes_total", "agent_rx_bytes_total")
_CONNECTORS = ("NixlConnector", "NixlPullConnector", "NixlPushConnector")
_REASON = "NIXL moves KV between engines and keeps none; whether a host tier lies behind it is not shown"


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """Not known whether there is a tier, in words that name the transport."""
    agent = any(sample.name in _AGENT for sample in samples)
    ours = engine.family == "vllm" and Series(samples, ["vllm:"], "engine", engine.rank).has("vllm:nixl_")
    told = "kv_connector" in facts and str(facts["kv_connector"].value) in _CONNECTORS
    return TierState("nixl", None, reason=_REASON) if agent or ours or told else None


TIER = Tier("nixl", frozenset({*_VLLM, *_AGENT}), read)
