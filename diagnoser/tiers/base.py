"""What a host-tier (L2) reader is, and the names of the counters it may report.

A reader only translates. Which state follows is decided by the checks of the rules (rules/checks/l2_*.yaml).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from diagnoser.model import EngineId, Fact, Sample, TierSeries, TierState

COUNTERS: Mapping[str, str] = {
    "stored_total": "moved from L1 into the tier, in the tier's unit unless its reader says otherwise",
    "loaded_total": "moved from the tier back into L1",
    "evicted_total": "thrown out of the tier to make room",
    "dropped_total": "stores refused because the tier had no room",
    "lagged_total": "left L1 before they were copied: the write path was too slow",
    "errors_total": "failed transfers; a miss is no failure",
    "l1_refused_total": "loads from storage that L1 had no room for",
    "hit_tokens_total": "tokens found in the tier",
    "query_tokens_total": "tokens looked up in the tier",
    "load_bytes_total": "bytes loaded",
    "load_seconds_total": "time spent on those loads, of the slowest rank",
    "loads_total": "loads",
    "load_speeds_total": "loads whose speed was measured",
    "load_speeds_sum_total": "sum of those speeds, bytes a second",
    "slow_loads_total": "loads that the tier itself calls slow",
    "evict_reuse_total": "sampled chunks that were wanted again after their eviction",
    "evict_reuse_seconds_total": "time from the eviction of those to the request",
    "kept_total": "sampled chunks that left the tier",
    "kept_seconds_total": "time those were kept",
}


@dataclass(frozen=True, slots=True)
class Tier:
    """One backend. A file diagnoser/tiers/<name>.py with TIER = Tier(...) is all a new one needs."""

    name: str
    metrics: frozenset[str]
    """Metric base names (colon spelling, without _bucket/_sum/_count) the reader uses."""
    read: Callable[[Sequence[Sample], EngineId, Mapping[str, Fact]], TierState | None]
    """The tier of one engine rank on one page; None = no sign of this backend. `facts` are all that is known."""
    family: str = ""
    """The engine family whose pages carry the series of `served`."""
    served: Mapping[str, tuple[TierSeries, ...]] = field(default_factory=dict)
    """What a metrics server is asked, by reading name: l2_ and a counter of COUNTERS, l2_capacity, l2_resident,
    l2_marker (there is such a tier), l2_counts_drops (a release that counts them, from the first on), l2_asked_total
    (look-ups of any connector), l2_none_marker (a page without a tier).
    """
