"""The series a family's readings come from, as the dialect needs them: engine aliases and those of its host tiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from diagnoser.engines import adapters
from diagnoser.engines.base import Alias, ServedNames
from diagnoser.tiers import tiers

PLACE = ("job", "instance")
"""The labels of a target in every server."""


@dataclass(frozen=True, slots=True)
class Family:
    """One engine family as a metrics server sees it."""

    name: str
    title: str
    anchors: tuple[str, ...]
    traits: Mapping[str, float | str]
    served: ServedNames
    readings: Mapping[str, Sequence[Alias]]


@cache
def families() -> tuple[Family, ...]:
    """All families that say how a server has their series."""
    found = []
    for adapter in adapters():
        if adapter.served is not None:
            readings = {**adapter.served.readings, **adapter.served.histograms, **_of_tiers(adapter.family)}
            anchors = adapter.anchors or tuple(sorted(adapter.metrics))
            found.append(Family(adapter.family, adapter.title, anchors, adapter.traits, adapter.served, readings))
    return tuple(found)


def _of_tiers(family: str) -> dict[str, list[Alias]]:
    """What the host tiers behind an engine of the family write on its page."""
    found: dict[str, list[Alias]] = {}
    for tier in tiers():
        for name, series in tier.served.items() if tier.family == family else ():
            aliases = (Alias(s.metric, where=s.where, take=s.take, scope=s.scope) for s in series)
            found.setdefault(name, []).extend(aliases)
    return found
