"""Engines of a metrics server, by the cheapest way that is right: what it recorded, what it computes, or its samples.

A handful of engines is diagnosed from raw samples, which is exact. A fleet is computed by the server; the worst are
then looked at from samples. With our recording rules loaded the server has the verdicts already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from diagnoser.doubt import doubt
from diagnoser.model import Diagnosis
from diagnoser.outputs.base import urgency, worst_first
from diagnoser.pipeline import diagnose
from diagnoser.promql.evaluate import Wanted, count_ranks, evaluate
from diagnoser.promql.recorded import recorded
from diagnoser.rulebook.rules import Rulebook
from diagnoser.served import Served, Wish, served
from diagnoser.sources.prometheus.api import Server
from diagnoser.sources.prometheus.selectors import instances

WAYS = ("auto", "recorded", "server", "samples")
FEW = 20
"""Ranks that are diagnosed from raw samples by themselves: under a second, and nothing is lost."""
LOOKED_AT = 6
"""Of a fleet the worst so many are looked at from samples."""
BOUND = (2, 4)


@dataclass(slots=True)
class Found:
    """Diagnoses, how they came about, and what to know beside them."""

    diagnoses: tuple[Diagnosis, ...]
    way: str
    said: list[str] = field(default_factory=list)
    samples: Served | None = None
    """What was read in samples, for notes about single engines."""


async def fleet(server: Server, wish: Wish, book: Rulebook, way: str, by: tuple[str, ...] = ()) -> Found:
    """All engines that match. Raises ServerError if nothing can be said."""
    if way in ("auto", "recorded") and (found := await _recorded(server, wish, book, way)) is not None:
        return await _looked_at(server, wish, book, found)
    if way == "server" or (way == "auto" and await count_ranks(server, _wanted(wish, by), book) > FEW):
        computed = await _computed(server, wish, book, by)
        if computed.diagnoses:
            return await _looked_at(server, wish, book, computed)
    # Where there is no engine at all, this tells why.
    samples = await served(server, wish)
    found_all = doubt(diagnose(samples.windows, book), samples.doubted, samples.failed)
    return Found(found_all, "samples", [], samples)


def _wanted(wish: Wish, by: tuple[str, ...]) -> Wanted:
    return Wanted(wish.at, wish.window, wish.match, by, wish.facts)


async def _recorded(server: Server, wish: Wish, book: Rulebook, way: str) -> Found | None:
    """Only for the window that the rules were made for, and without facts that they do not know."""
    found = await recorded(server, wish.at, wish.match, book)
    if found is None or (way == "auto" and (found.window != wish.window or wish.facts)):
        return None
    said = [f"by the recording rules that {server.name} has loaded (diagnose rules export), one query."]
    said += [_other_window(found.window, wish.window)] if found.window != wish.window else []
    return Found(_doubted(found.diagnoses, found.warnings), "recorded", said)


def _other_window(has: float, wanted: float) -> str:
    return f"the rules are made for windows of {has:g} s, not for {wanted:g} s."


async def _computed(server: Server, wish: Wish, book: Rulebook, by: tuple[str, ...]) -> Found:
    diagnoses, answers, step = await evaluate(server, _wanted(wish, by), book)
    said = [f"computed by {server.name} in PromQL at steps of {step:g} s (--evaluate samples is exact, and slower)."]
    for signal, why in list(answers.failed.items())[:1]:
        more = f" and {len(answers.failed) - 1} more signals" if len(answers.failed) > 1 else ""
        said.append(f"{signal}{more} could not be computed and is unknown: {why}")
    return Found(_doubted(diagnoses, answers.warnings), "server", said)


def _doubted(found: Sequence[Diagnosis], warnings: Sequence[str]) -> tuple[Diagnosis, ...]:
    """Any engine may be the one that a partial answer left out."""
    doubted: Mapping[str, tuple[str, ...]] = {one.engine.target: tuple(warnings) for one in found} if warnings else {}
    return doubt(found, doubted, {})


async def _looked_at(server: Server, wish: Wish, book: Rulebook, found: Found) -> Found:
    """The worst of every kind of bottleneck from samples, whole checklist and all."""
    bound = [one for one in worst_first(found.diagnoses) if urgency(one) in BOUND]
    firsts = list({one.verdict.rule: one for one in reversed(bound)}.values())[::-1]
    chosen = list(dict.fromkeys([*(d.engine.target for d in firsts), *(d.engine.target for d in bound)]))[:LOOKED_AT]
    places = {name.partition(" {")[0] for name in chosen}
    if not places:
        return found
    match = ",".join(part for part in (wish.match, instances(places)) if part)
    samples = await served(server, replace(wish, match=match))
    exact = doubt(diagnose(samples.windows, book), samples.doubted, samples.failed)
    known = {(one.engine.target.partition(" {")[0], one.engine.rank): one for one in exact}
    diagnoses = tuple(_exact(one, known) if one.engine.target in chosen else one for one in found.diagnoses)
    said = [*found.said, f"the worst {len(chosen)} were looked at from their samples, as shown in full."]
    return Found(diagnoses, found.way, said, samples)


def _exact(one: Diagnosis, known: Mapping[tuple[str, str], Diagnosis]) -> Diagnosis:
    found = known.get((one.engine.target.partition(" {")[0], one.engine.rank))
    return one if found is None else replace(found, engine=replace(found.engine, target=one.engine.target))
