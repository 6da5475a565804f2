"""Host-tier (L2) readers: the samples of one page -> TierState. A module is a tier if it has TIER."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

from diagnoser.model import EngineId, Fact, Sample, TierState
from diagnoser.tiers.base import Thresholds, Tier, state

__all__ = ["NOTHING", "Thresholds", "Tier", "read_tier", "state", "tiers"]

NOTHING = TierState("none", None, reason="the page does not tell whether there is a host tier")


@cache
def tiers() -> tuple[Tier, ...]:
    """Every tier of the package, in order of module name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = (import_module(f"{__name__}.{name}") for name in names)
    return tuple(module.TIER for module in modules if hasattr(module, "TIER"))


def read_tier(samples: Sequence[Sample], engine: EngineId, facts: Mapping[str, Fact]) -> TierState:
    """The host tier of one engine rank: what governs admission, else what is there, else what is surely not."""
    found = [seen for tier in tiers() if (seen := tier.read(samples, engine, facts)) is not None]
    return min(found, key=_order, default=NOTHING)


def _order(seen: TierState) -> int:
    if seen.presence:
        return 0 if seen.governs_admission else 1 if seen.capacity or seen.resident is not None else 2
    return 3 if seen.presence is False else 4
