"""Host-tier (L2) readers: the samples of one page -> TierState. A module is a tier if it has TIER."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module

from diagnoser.model import EngineId, Fact, Sample, TierState
from diagnoser.tiers.base import COUNTERS, Tier

__all__ = ["COUNTERS", "NOTHING", "Tier", "join", "read_tier", "tiers"]

NOTHING = TierState("none", None, reason="the page does not tell whether there is a host tier")
_HITS = ("hit_tokens_total", "query_tokens_total")


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


def join(own: TierState, elsewhere: Sequence[TierState]) -> TierState:
    """The engine's own page and the pages of its tiers at other addresses as one state; they never contradict.

    A tier that is there wins; else, if an address did not answer, the state is not known, whatever the engine's page
    lacks. What the engine counts of the same tier (its operations on a store, its hits) is added.
    """
    best = min((own, *elsewhere), key=_order)
    if best is own or not best.presence:
        silent = next((tier for tier in elsewhere if tier.presence is None), None)
        return own if silent is None or own.presence else silent
    same = own.backend == best.backend
    known = any(name in best.counters for name in _HITS)
    added = {name: own.counters[name] for name in own.counters if same or (not known and name in _HITS)}
    return replace(best, counters={**added, **best.counters})


def _order(seen: TierState) -> int:
    if seen.presence:
        return 0 if seen.governs_admission else 1 if seen.capacity or seen.resident is not None else 2
    return 3 if seen.presence is False else 4
