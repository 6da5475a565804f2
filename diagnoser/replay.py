"""Plays a recording through the pipeline: windows at the first poll + window, then every step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from diagnoser.l2pages import L2Page, assign, host_of, is_l2_page, read_l2
from diagnoser.model import Diagnosis, Fact, Scrape, Target, Window
from diagnoser.pipeline import History, diagnose, snapshots_of, wanted_metrics
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


def split(recording: Recording) -> tuple[tuple[RecordedTarget, ...], tuple[RecordedTarget, ...]]:
    """(engines, host tiers): a target whose pages show a tier and no engine belongs to the others."""
    tiers = tuple(target for target in recording.targets if _only_l2(target))
    engines = tuple(target for target in recording.targets if target not in tiers)
    return (engines, tiers) if engines else (tiers, ())


def _only_l2(recorded: RecordedTarget) -> bool:
    page = next((page for page in recorded.pages() if page.text is not None), None)
    if page is None or page.text is None:
        return False
    found = PageParser(wanted_metrics()).parse(page.text)
    scrape = Scrape(Target(recorded.name), page.at, found.samples)
    return is_l2_page(scrape) and not snapshots_of(scrape, {})


def l2_scrapes(recorded: RecordedTarget, since: float = 0.0, until: float = math.inf) -> Iterator[Scrape]:
    """Every poll of a recorded host tier within [since, until]."""
    target, parser = Target(recorded.name), PageParser(wanted_metrics())
    for page in recorded.pages():
        if since <= page.at <= until:
            failed = page.text is None
            error = f"{recorded.name}: {page.error}"
            yield (
                Scrape(target, page.at, error=error)
                if failed
                else read_l2(target, page.at, page.text or "", parser.parse)
            )


class _Tape:
    """The histories of a recording's engines and the pages of its host tiers, fed in time order."""

    def __init__(
        self, recording: Recording, facts: Mapping[str, Fact], keep: float, beside: Sequence[tuple[str, Recording]]
    ) -> None:
        self.engines, tiers = split(recording)
        self.tiers = [("", tier) for tier in tiers] + [(only, t) for only, other in beside for t in other.targets]
        self.histories = {t.name: History(t.name, keep, {**identity(t.meta), **facts}) for t in self.engines}
        self._pages = [(only, L2Page(tier.name, keep)) for only, tier in self.tiers]
        served = assign(self.histories, self._pages, host_of)
        for name, history in self.histories.items():
            history.l2_pages = tuple(served[name])

    def polls(self, since: float = 0.0, until: float = math.inf) -> list[tuple[Scrape, Callable[[Scrape], None]]]:
        """Every poll with where it goes, in time order; of one instant the host tier's first."""
        found: list[tuple[Scrape, Callable[[Scrape], None]]] = []
        for (_, tier), (_, page) in zip(self.tiers, self._pages, strict=True):
            found += [(poll, page.add) for poll in l2_scrapes(tier, since, until)]
        for engine in self.engines:
            found += [(poll, self.histories[engine.name].add) for poll in scrapes(engine, since, until)]
        return sorted(found, key=lambda item: item[0].at)

    def windows(self, at: float, window: float) -> list[Window]:
        """One window an engine rank."""
        return [w for history in self.histories.values() for w in history.windows(at, window)]


def identity(meta: Mapping[str, object]) -> dict[str, Fact]:
    """Who was recorded; the only facts a recording itself may give."""
    version = meta.get("version")
    return {"version": Fact("version", str(version), "the recording's meta.json")} if version else {}


def span(recording: Recording) -> tuple[float, float]:
    """Unix seconds of the first and the last poll."""
    times = [time for target in recording.targets for time in target.times]
    return min(times), max(times)


def instant(
    recording: Recording,
    book: Rulebook,
    facts: Mapping[str, Fact],
    window: float,
    at: float,
    beside: Sequence[tuple[str, Recording]] = (),
) -> tuple[Diagnosis, ...]:
    """The diagnoses of one instant: of (at - window, at], a rank each, all targets.

    `beside` are recordings of host tiers, each for the engine it is given with, or for all ("").
    """
    tape = _Tape(recording, facts, window, beside)
    for poll, into in tape.polls(at - window - SLACK, at + SLACK):
        into(poll)
    return diagnose(tape.windows(at, window), book)


def replay(
    recording: Recording,
    book: Rulebook,
    facts: Mapping[str, Fact],
    window: float,
    step: float,
    beside: Sequence[tuple[str, Recording]] = (),
) -> Iterator[tuple[Diagnosis, ...]]:
    """One tuple of diagnoses (a rank each, all targets) for every instant.

    The last instant is the last poll at least once.
    """
    tape = _Tape(recording, facts, window + step, beside)
    polls = tape.polls()
    own = [time for engine in tape.engines for time in engine.times]
    if not own:
        return
    first, last = min(own), max(own)
    at = min(first + window, last)
    for poll, into in [*polls, (None, None)]:
        while poll is None or poll.at > at + SLACK:
            if at > last + SLACK:
                break
            yield diagnose(tape.windows(at, window), book)
            at += step
        if poll is not None and into is not None:
            into(poll)
