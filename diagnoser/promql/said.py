"""Which signals a metrics server can say for which engine family, and why not the others: for the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diagnoser.promql.dialect import FamilyDialect
from diagnoser.promql.evaluate import Wanted, dialects
from diagnoser.rulebook.rules import Rulebook
from diagnoser.signals.base import IntervalSignal, Signal, intervals, signals
from diagnoser.signals.promql import Ask, Cannot, Of, Told, Unless, parts

TOLD = "only where the user tells it (a fact)"
NOTHING = "the engine's own page has no series for it, or none that is asked for"


@dataclass(frozen=True, slots=True)
class Unsaid:
    """A signal that a metrics server cannot say for a family."""

    signal: str
    family: str
    reason: str


def unsaid(book: Rulebook) -> list[Unsaid]:
    """Every signal and family without a query."""
    known: list[Signal | IntervalSignal] = [*signals(), *intervals()]
    return [
        Unsaid(signal.name, dialect.family.title, _why(signal, dialect))
        for signal in known
        for dialect in dialects(Wanted(0.0, 300.0), 15.0, book)
        if _text(signal, dialect) is None
    ]


def _text(signal: Signal | IntervalSignal, dialect: FamilyDialect) -> str | None:
    return signal.promql.text(dialect.inside() if isinstance(signal, IntervalSignal) else dialect)


def _why(signal: Signal | IntervalSignal, dialect: FamilyDialect) -> str:
    nodes = list(_nodes(signal.promql, dialect))
    cannot = next((node.reason for node in nodes if isinstance(node, Cannot) and node.reason), None)
    if cannot is not None:
        return cannot
    if any(isinstance(node, Told) for node in nodes):
        return TOLD
    return NOTHING


def _nodes(ask: Ask, dialect: FamilyDialect) -> Iterator[Ask]:
    """All nodes that count for the family."""
    yield ask
    if isinstance(ask, Unless):
        yield from _nodes(ask.choice(dialect), dialect)
        return
    below = [dialect.signals[ask.name]] if isinstance(ask, Of) else parts(ask)
    for part in below:
        yield from _nodes(part, dialect)
