"""A fleet diagnosed by its own metrics server: it computes the signals, we decide."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from diagnoser.engines.facts import number
from diagnoser.model import Diagnosis, Fact
from diagnoser.promql.dialect import FamilyDialect, Span
from diagnoser.promql.fleet import Asker, Fleet
from diagnoser.promql.judge import Judging, judge
from diagnoser.promql.names import families
from diagnoser.promql.plan import FIRST, Question, decisive, interval_questions, standing_question, window_questions
from diagnoser.promql.text import one_of, quoted
from diagnoser.rulebook.rules import Rulebook
from diagnoser.signals.base import signals
from diagnoser.sources.prometheus.api import Server, together

PROBE_STEP = 15.0
"""Time between pages that discovery assumes; what it counts then tells the real one."""
MOST_NAMED = 0.3
"""Above this share of the fleet it is cheaper to ask of all than to name those who are meant."""
FULL = 100
"""Ranks with a bottleneck that get their whole checklist."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which engines, when, and how much of them. `names` None: the signals that verdicts rest on."""

    at: float
    window: float
    match: str = ""
    by: tuple[str, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    names: tuple[str, ...] | None = None
    step: float | None = None
    full: int = FULL
    narrow: bool = True
    """Ask for details of the engines that may have a bottleneck only."""


def dialects(wanted: Wanted, step: float, book: Rulebook) -> tuple[FamilyDialect, ...]:
    """One a family."""
    told = {name: value for name in wanted.facts if (value := number(wanted.facts, name)) is not None}
    asks = {signal.name: signal.promql for signal in signals()}
    span = Span(wanted.window, step)
    return tuple(
        FamilyDialect(family, span, book.params(), asks, wanted.match, wanted.by, facts=told, now=wanted.at)
        for family in families()
    )


async def evaluate(server: Server, wanted: Wanted, book: Rulebook) -> tuple[tuple[Diagnosis, ...], Fleet, float]:
    """Verdicts, what they rest on, and the time between two pages. Raises ServerError if nothing can be asked."""
    asker = Asker(server, wanted.at, wanted.by)
    await asker.discover(dialects(wanted, wanted.step or PROBE_STEP, book))
    step = wanted.step or _step(asker.fleet.columns["scrapes"], wanted.window)
    spoken = dialects(wanted, step, book)
    await asker.ask([*window_questions(FIRST, spoken), standing_question(book, spoken)])
    suspects = asker.fleet.suspects()
    if suspects:
        await _ask_of(suspects, asker, wanted, spoken, book)
    how = Judging(wanted.at, wanted.window, step, wanted.full, wanted.facts)
    return judge(asker.fleet, book, how), asker.fleet, step


async def _ask_of(
    suspects: Sequence[int], asker: Asker, wanted: Wanted, spoken: Sequence[FamilyDialect], book: Rulebook
) -> None:
    """Everything else, of the engines that may have a bottleneck."""
    names = wanted.names if wanted.names is not None else decisive(book)
    rest = [name for name in names if name not in ("scrapes", *FIRST)]
    everywhere = [*window_questions(rest, spoken), *interval_questions(spoken)]
    if len(suspects) > MOST_NAMED * len(asker.fleet.ranks) or not wanted.narrow:
        await asker.ask(everywhere)
        return
    places = one_of({asker.fleet.ranks[i].labels.get("instance", "") for i in suspects})
    narrow = [replace(d, match=_joined(d.match, f"instance=~{quoted(places)}")) for d in spoken]
    await asker.ask(_either([*window_questions(rest, narrow), *interval_questions(narrow)], everywhere))


def _either(narrow: Sequence[Question], everywhere: Sequence[Question]) -> list[Question]:
    """The narrow ones, with the others for a server that refuses long queries."""
    plain = {question.signal: question.texts for question in everywhere}
    return [replace(question, instead=plain.get(question.signal, ())) for question in narrow]


def _joined(*matchers: str) -> str:
    return ",".join(matcher for matcher in matchers if matcher)


async def count_ranks(server: Server, wanted: Wanted, book: Rulebook) -> int:
    """How many engine ranks the server knows at that time. Raises ServerError."""
    texts = (d.pages("count") for d in dialects(wanted, PROBE_STEP, book))
    answers = await together(server.query(f"count({text})", wanted.at) for text in texts if text is not None)
    return sum(round(one.values[-1][1]) for answer in answers for one in answer.series)


def _step(pages: Sequence[float | None], window: float) -> float:
    """The usual time between two pages: of the slower half, so that no step is empty."""
    seen = [window / count for count in pages if count]
    return float(round(statistics.median_high(seen))) if seen else PROBE_STEP
