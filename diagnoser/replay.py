"""Plays a recording through the pipeline: windows at the first poll + window, then every step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import chain

from diagnoser.model import Diagnosis, Fact, Scrape, Target
from diagnoser.pipeline import History, diagnose, wanted_metrics
from diagnoser.rulebook.rules import Rulebook
from diagnoser.sources.base import to_scrape
from diagnoser.sources.exposition import PageParser
from diagnoser.sources.recording import RecordedTarget, Recording

SLACK = 0.02
"""Polls are stamped in milliseconds; one that belongs to an instant may carry a later stamp by this
much, in seconds.
"""


def scrapes(recorded: RecordedTarget, since: float = 0.0, until: float = math.inf) -> Iterator[Scrape]:
    """Every poll of one recorded target within [since, until], in time order."""
    target, parser = Target(recorded.name), PageParser(wanted_metrics())
    for page in recorded.pages():
        if not since <= page.at <= until:
            continue
        if page.text is None:
            yield Scrape(target, page.at, error=f"{recorded.name}: {page.error}")
        else:
            yield to_scrape(target, page.at, page.text, parser.parse)


def identity(meta: Mapping[str, object]) -> dict[str, Fact]:
    """Who was recorded; the only facts a recording itself may give."""
    version = meta.get("version")
    return {"version": Fact("version", str(version), "the recording's meta.json")} if version else {}


def span(recording: Recording) -> tuple[float, float]:
    """Unix seconds of the first and the last poll."""
    times = [time for target in recording.targets for time in target.times]
    return min(times), max(times)


def instant(
    recording: Recording, book: Rulebook, facts: Mapping[str, Fact], window: float, at: float
) -> tuple[Diagnosis, ...]:
    """The diagnoses of one instant: of (at - window, at], a rank each, all targets."""
    histories = [History(t.name, window, {**identity(t.meta), **facts}) for t in recording.targets]
    for recorded, history in zip(recording.targets, histories, strict=True):
        for poll in scrapes(recorded, at - window - SLACK, at + SLACK):
            history.add(poll)
    return diagnose([w for history in histories for w in history.windows(at, window)], book)


def replay(
    recording: Recording, book: Rulebook, facts: Mapping[str, Fact], window: float, step: float
) -> Iterator[tuple[Diagnosis, ...]]:
    """One tuple of diagnoses (a rank each, all targets) for every instant.

    The last instant is the last poll at least once.
    """
    histories = {t.name: History(t.name, window + step, {**identity(t.meta), **facts}) for t in recording.targets}
    polls = merge(*(scrapes(target) for target in recording.targets), key=lambda scrape: scrape.at)
    first, last = span(recording)
    at = min(first + window, last)
    for poll in chain(polls, [None]):
        while poll is None or poll.at > at + SLACK:
            if at > last + SLACK:
                break
            yield diagnose([w for h in histories.values() for w in h.windows(at, window)], book)
            at += step
        if poll is not None:
            histories[poll.target.name].add(poll)
