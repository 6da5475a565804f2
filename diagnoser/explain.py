"""All that has a name, in one line and at length: checks, verdicts, remedies, thresholds, gates, signals, facts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from diagnoser.engines.base import FACTS
from diagnoser.language import Language, phrase
from diagnoser.rulebook.conditions import CheckIs, Compare, Condition, Join, Not
from diagnoser.rulebook.rules import Check, Gate, RemedyRule, Rulebook, Threshold, VerdictRule
from diagnoser.signals.base import intervals, signals
from diagnoser.units import quantity

WIDTH = 96
CONTEXT = "explain"
"""Of our own words in the catalogue."""
WORDS = (
    "label", "yes if", "no if", "otherwise, if it is known", "unknown", "why", "source", "more", "a yes settles",
    "means", "when", "evidence", "ruled out", "remedies", "not", "effect", "costs", "closed if",
    "every gate before it was found open and somebody waits", "unit", "give it", "always", " and ", " or ",
    "not ({condition})", "{check} is {answer}", " (parameter of a signal)",
)  # fmt: skip

DEEPER = ("source", "more")
"""For those who look into the engines' sources: not translated."""


@dataclass(frozen=True, slots=True)
class Part:
    """A paragraph with its name, and the language that it is in."""

    name: str
    text: str
    language: Language = "en"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that has a name: its line, and its explanation."""

    title: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The explanation in lines."""
        return _paragraphs(self.parts)


Entries = Mapping[str, Mapping[str, Entry]]
"""kind -> name -> entry"""


def entries(book: Rulebook, language: Language = "en") -> Entries:
    """All that can be explained."""
    tell = _Teller(language)
    return {
        "checks": {check.id: tell.check(check) for check in book.checks},
        "verdicts": {rule.id: tell.verdict(rule) for rule in book.verdicts},
        "remedies": {remedy.id: tell.remedy(remedy) for remedy in book.remedies.values()},
        "thresholds": {t.name: tell.threshold(t) for t in book.thresholds.values()},
        "gates": {gate.id: tell.gate(gate) for gate in book.gates},
        "signals": {name: Entry(meaning, tell.parts(("unit", unit))) for name, unit, meaning in _signals()},
        "facts": {
            name: Entry(meaning, tell.parts(("give it", f"--fact {name}=VALUE"))) for name, meaning in FACTS.items()
        },
    }


def _signals() -> list[tuple[str, str, str]]:
    return [(s.name, s.unit, s.meaning) for s in signals()] + [(s.name, s.unit, s.meaning) for s in intervals()]


class _Teller:
    """Explains in one language."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.word = partial(phrase, language=language, context=CONTEXT)

    def said(self, text: str) -> str:
        """A text of the rules."""
        return phrase(" ".join(text.split()), self.language)

    def parts(self, *given: tuple[str, str]) -> tuple[Part, ...]:
        """Paragraphs, those without a text left out."""
        own: dict[str, Language] = {name: "en" if name in DEEPER else self.language for name, _ in given}
        return tuple(Part(self.word(name), " ".join(text.split()), own[name]) for name, text in given if text.strip())

    def check(self, check: Check) -> Entry:
        otherwise = self.word("otherwise, if it is known")
        return Entry(
            self.said(check.question),
            self.parts(
                ("label", f"{self.said(check.label)} ({check.kind}, {check.severity})"),
                ("yes if", self.condition(check.yes)),
                ("no if", self.condition(check.no) if check.no else otherwise),
                ("unknown", self.said(check.unknown)),
                ("why", self.said(check.rationale)),
                ("source", check.source),
                ("more", check.doc),
                ("a yes settles", ", ".join(f"{topic} = {value}" for topic, value in check.settles.items())),
            ),
        )

    def verdict(self, rule: VerdictRule) -> Entry:
        return Entry(
            self.said(rule.headline),
            self.parts(
                ("means", self.said(rule.meaning)),
                ("when", self.condition(rule.when)),
                ("evidence", ", ".join(rule.direct)),
                ("ruled out", ", ".join(rule.exclude)),
                ("remedies", ", ".join(rule.remedies)),
                ("not", " ".join(self.said(text) for text, _ in rule.not_remedies)),
            ),
        )

    def remedy(self, remedy: RemedyRule) -> Entry:
        flags = [Part(family, self.said(flag), self.language) for family, flag in remedy.flags.items()]
        rest = self.parts(("effect", self.said(remedy.effect)), ("costs", self.said(remedy.side_effect)))
        return Entry(self.said(remedy.action), (*flags, *rest))

    def threshold(self, threshold: Threshold) -> Entry:
        values = threshold.value if isinstance(threshold.value, tuple) else (threshold.value,)
        unit = "" if threshold.unit == "parameter" else threshold.unit
        shown = ", ".join(quantity(value, "") for value in values)
        title = shown + (f" {unit}" if unit else self.word(" (parameter of a signal)"))
        return Entry(title, (Part(self.word("why"), " ".join(threshold.reason.split())),))

    def gate(self, gate: Gate) -> Entry:
        last = self.word("every gate before it was found open and somebody waits")
        when = self.condition(gate.when) if gate.when is not None else last
        return Entry(self.said(gate.title), self.parts(("closed if", when), ("why", self.said(gate.reason))))

    def condition(self, condition: Condition) -> str:
        """A condition in words."""
        if isinstance(condition, Compare):
            limit = f"{condition.threshold} ({condition.value:g})" if condition.threshold else f"{condition.value:g}"
            return f"{condition.signal} {condition.op} {limit}"
        if isinstance(condition, CheckIs):
            return self.word("{check} is {answer}").format(check=condition.check, answer=condition.answer)
        if isinstance(condition, Not):
            return self.word("not ({condition})").format(condition=self.condition(condition.item))
        return self._joined(condition)

    def _joined(self, condition: Join) -> str:
        if not condition.items:
            return self.word("always")
        word = self.word(" and " if condition.how == "all" else " or ")
        return word.join(
            f"({self.condition(i)})" if isinstance(i, Join) and len(i.items) > 1 else self.condition(i)
            for i in condition.items
        )


def _paragraphs(parts: Iterable[Part]) -> str:
    out = []
    for part in parts:
        lead = f"  {part.name:<10} "
        out.append(textwrap.fill(part.text, WIDTH, initial_indent=lead, subsequent_indent=" " * 13))
    return "\n".join(out) + "\n"
