"""The stretch of a recording that a what-if is about: as long as the same gate stayed closed while requests kept coming.

A longer window makes rates steadier, and one that mixes states makes them wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from diagnoser.model import Diagnosis, Fact
from diagnoser.pipeline import limits_of
from diagnoser.replay import instant, replay
from diagnoser.rulebook.rules import Rulebook
from diagnoser.sources.recording import Recording
from diagnoser.whatif import what_if

STILL_COMING = 0.7
"""A window at the end of the stretch in which fewer than this part of the usual requests came belongs to the time after
the load; its queue drains or was given up.
"""

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
        first, last = _stretch(ones, bad)
        span = last.at - first.at + window
        chosen = instant(recording, book, facts, span, last.at)
        out += [with_what_if(one, book) for one in chosen if (one.engine.target, one.engine.rank) == key]
    return out


def with_what_if(diagnosis: Diagnosis, book: Rulebook) -> Diagnosis:
    """The diagnosis with its what-if, also where no gate is closed."""
    return replace(diagnosis, what_if=what_if(diagnosis, limits_of(book)))


def _stretch(ones: Sequence[Diagnosis], bad: Callable[[Diagnosis], tuple[int, float]]) -> tuple[Diagnosis, Diagnosis]:
    """First and last window of the worst state, around its worst window."""
    worst = max(range(len(ones)), key=lambda i: (bad(ones[i]), i))
    first = last = worst
    while first > 0 and _same(ones[first - 1], ones[worst]):
        first -= 1
    while last < len(ones) - 1 and _same(ones[last + 1], ones[worst]):
        last += 1
    usual = max(_arriving(one) for one in ones[first : last + 1])
    while last > first and _arriving(ones[last]) < STILL_COMING * usual:
        last -= 1
    return ones[first], ones[last]


def _same(one: Diagnosis, other: Diagnosis) -> bool:
    return one.verdict.bottleneck == other.verdict.bottleneck


def _arriving(one: Diagnosis) -> float:
    rate = one.signals.get("arrival_rate")
    return 0.0 if rate is None or rate.value is None else rate.value
