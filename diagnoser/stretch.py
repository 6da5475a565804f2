"""The stretch of a recording that a what-if is about: as long as one gate stayed closed while requests kept coming.

A longer window makes rates steadier, and one that mixes states makes them wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from diagnoser.model import Diagnosis, Fact
from diagnoser.pipeline import limits_of, snapshots_of
from diagnoser.replay import instant, replay, scrapes
from diagnoser.rulebook.rules import Rulebook
from diagnoser.signals.requests import waiting
from diagnoser.sources.recording import Recording
from diagnoser.whatif import what_if

Key = tuple[str, str]


def diagnosed(
    recording: Recording,
    book: Rulebook,
    facts: Mapping[str, Fact],
    window: float,
    bad: Callable[[Diagnosis], tuple[int, float]],
) -> list[Diagnosis]:
    """One diagnosis an engine rank, of its worst stretch, each with its what-if."""
    found: dict[Key, list[Diagnosis]] = {}
    for diagnoses in replay(recording, book, facts, window, window / 6):
        for one in diagnoses:
            found.setdefault((one.engine.target, one.engine.rank), []).append(one)
    out = []
    for key, ones in found.items():
        kept = _stretch(ones, bad, book)
        start = max(kept[0].at - window, _queue_starts(recording, facts, key, kept[0].at - window, kept[-1].at))
        chosen = instant(recording, book, facts, max(window, kept[-1].at - start), kept[-1].at)
        mine = [one for one in chosen if (one.engine.target, one.engine.rank) == key]
        out += [with_what_if(one, book, _busiest(kept, window)) for one in mine]
    return out


def _queue_starts(recording: Recording, facts: Mapping[str, Fact], key: Key, since: float, until: float) -> float:
    """When somebody waits for the first time: before that the engine had less to do than it could."""
    for target in (t for t in recording.targets if t.name == key[0]):
        for scrape in scrapes(target, since, until):
            if any(s.engine.rank == key[1] and (waiting(s) or 0.0) > 0 for s in snapshots_of(scrape, facts)):
                return scrape.at
    return since


def _busiest(kept: Sequence[Diagnosis], window: float) -> float | None:
    """Arrivals a second in the busiest two windows on end: what a pool without a lasting queue has to carry.

    A shorter burst makes a short queue; a longer mean hides the minute in which the queue grew.
    """
    pairs = [(a, b) for a in kept for b in kept if abs(b.at - a.at - window) < window / 12]
    return max(((_arriving(a) + _arriving(b)) / 2 for a, b in pairs), default=None)


def with_what_if(diagnosis: Diagnosis, book: Rulebook, busiest: float | None = None) -> Diagnosis:
    """The diagnosis with its what-if, also where no gate is closed."""
    return replace(diagnosis, what_if=what_if(diagnosis, limits_of(book), busiest))


def _stretch(
    ones: Sequence[Diagnosis], bad: Callable[[Diagnosis], tuple[int, float]], book: Rulebook
) -> Sequence[Diagnosis]:
    """The windows of the worst state, around its worst window, as long as requests kept coming."""
    worst = max(range(len(ones)), key=lambda i: (bad(ones[i]), i))
    same = [i for i, one in enumerate(ones) if _same(one, ones[worst])]
    first = last = worst
    for i in reversed([i for i in same if i < worst]):
        first = (
            i if ones[first].at - ones[i].at <= book.number("stretch_break_windows") * ones[i].window_seconds else first
        )
    for i in (i for i in same if i > worst):
        last = (
            i if ones[i].at - ones[last].at <= book.number("stretch_break_windows") * ones[i].window_seconds else last
        )
    rates = sorted(_arriving(one) for one in ones[first : last + 1])
    usual = rates[3 * len(rates) // 4]
    while last > first and _arriving(ones[last]) < book.number("stretch_arrivals_ratio") * usual:
        last -= 1
    return ones[first : last + 1]


def _same(one: Diagnosis, other: Diagnosis) -> bool:
    return one.verdict.bottleneck == other.verdict.bottleneck


def _arriving(one: Diagnosis) -> float:
    rate = one.signals.get("arrival_rate")
    return 0.0 if rate is None or rate.value is None else rate.value
