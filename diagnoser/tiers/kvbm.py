"""Dynamo's KVBM: blocks moved between G1 (device), G2 (host), G3 (disk) and G4 (object); nothing about its pools.

Source: prometheus_names.rs. "d2d" is device to disk. No capacity, no occupancy, no latency is exported, and the hit
rates are gauges over a sliding window, so neither fill nor idleness can be told: only loads count, as proof that it
serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import EngineId, Fact, Sample, TierState
from diagnoser.tiers.base import Tier
from diagnoser.tiers.series import Series, added, known

_P = "kvbm_"
_ONBOARDED = tuple(f"{_P}onboard_blocks_{way}{end}" for way in ("h2d", "d2d", "o2d") for end in ("", "_total"))
_MATCHED = (f"{_P}matched_tokens", f"{_P}matched_tokens_total")
_FAILED = tuple(f"{_P}object_{way}_failures{end}" for way in ("read", "write") for end in ("", "_total"))
_REASON = "KVBM exports the blocks it moves, but neither how large its pools are nor how full"


def read(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState | None:
    """KVBM by any of its series; of stores nothing is kept, so that no silence can be read as idleness."""
    series = Series((sample for sample in samples if sample.name.startswith(_P)), [_P])
    if not series:
        return None
    loaded = [series.total(metric) for metric in _ONBOARDED]
    if not any(reading.value for reading in loaded if reading is not None):
        loaded = []
    counters = {
        "loaded_total": added(*loaded),
        "errors_total": added(*(series.total(metric) for metric in _FAILED)),
        "hit_tokens_total": added(*(series.total(metric) for metric in _MATCHED)),
    }
    return TierState("kvbm", True, "blocks", counters=known(counters), reason=_REASON)


TIER = Tier("kvbm", frozenset({*_ONBOARDED, *_MATCHED, *_FAILED}), read)
