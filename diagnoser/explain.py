"""All that has a name, in one line and at length: checks, verdicts, remedies, thresholds, gates, signals, facts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

from diagnoser.engines.base import FACTS
from diagnoser.rulebook.conditions import CheckIs, Compare, Condition, Join, Not
from diagnoser.rulebook.rules import Check, Gate, RemedyRule, Rulebook, Threshold, VerdictRule
from diagnoser.signals.base import intervals, signals
from diagnoser.units import quantity

Entries = Mapping[str, Mapping[str, tuple[str, str]]]
"""kind -> name -> (one line, explanation)"""
WIDTH = 96


def entries(book: Rulebook) -> Entries:
    """All that can be explained."""
    return {
        "checks": {check.id: (check.question, _check(check)) for check in book.checks},
        "verdicts": {rule.id: (rule.headline, _verdict(rule, book)) for rule in book.verdicts},
        "remedies": {remedy.id: (remedy.action, _remedy(remedy)) for remedy in book.remedies.values()},
        "thresholds": {t.name: (_value(t), _paragraphs([("why", t.reason)])) for t in book.thresholds.values()},
        "gates": {gate.id: (gate.title, _gate(gate)) for gate in book.gates},
        "signals": {name: (meaning, _paragraphs([("unit", unit)])) for name, unit, meaning in _signals()},
        "facts": {
            name: (meaning, _paragraphs([("give it", f"--fact {name}=VALUE")])) for name, meaning in FACTS.items()
        },
    }


def _signals() -> list[tuple[str, str, str]]:
    return [(s.name, s.unit, s.meaning) for s in signals()] + [(s.name, s.unit, s.meaning) for s in intervals()]


def _check(check: Check) -> str:
    yes = [
        ("yes if", _condition(check.yes)),
        ("no if", _condition(check.no) if check.no else "otherwise, if it is known"),
    ]
    rest = [("unknown", check.unknown), ("why", check.rationale), ("source", check.source), ("more", check.doc)]
    settles = ", ".join(f"{topic} = {value}" for topic, value in check.settles.items())
    label = ("label", f"{check.label} ({check.kind}, {check.severity})")
    return _paragraphs([label, *yes, *rest, *([("a yes settles", settles)] if settles else [])])


def _verdict(rule: VerdictRule, book: Rulebook) -> str:
    remedies = ", ".join(rule.remedies)
    return _paragraphs(
        [
            ("means", rule.meaning),
            ("when", _condition(rule.when)),
            ("evidence", ", ".join(rule.direct)),
            ("ruled out", ", ".join(rule.exclude)),
            ("remedies", remedies),
            ("not", " ".join(text for text, _ in rule.not_remedies)),
        ]
    )


def _remedy(remedy: RemedyRule) -> str:
    flags = [(family, flag) for family, flag in remedy.flags.items()]
    return _paragraphs([*flags, ("effect", remedy.effect), ("costs", remedy.side_effect)])


def _gate(gate: Gate) -> str:
    when = _condition(gate.when) if gate.when is not None else "every gate before it was found open and somebody waits"
    return _paragraphs([("closed if", when), ("why", gate.reason)])


def _value(threshold: Threshold) -> str:
    values = threshold.value if isinstance(threshold.value, tuple) else (threshold.value,)
    unit = "" if threshold.unit == "parameter" else threshold.unit
    return ", ".join(quantity(value, "") for value in values) + (f" {unit}" if unit else " (parameter of a signal)")


def _condition(condition: Condition) -> str:
    if isinstance(condition, Compare):
        limit = f"{condition.threshold} ({condition.value:g})" if condition.threshold else f"{condition.value:g}"
        return f"{condition.signal} {condition.op} {limit}"
    if isinstance(condition, CheckIs):
        return f"{condition.check} is {condition.answer}"
    if isinstance(condition, Not):
        return f"not ({_condition(condition.item)})"
    return _joined(condition)


def _joined(condition: Join) -> str:
    if not condition.items:
        return "always"
    word = " and " if condition.how == "all" else " or "
    parts = [
        f"({_condition(i)})" if isinstance(i, Join) and len(i.items) > 1 else _condition(i) for i in condition.items
    ]
    return word.join(parts)


def _paragraphs(parts: Iterable[tuple[str, str]]) -> str:
    out = []
    for name, text in parts:
        if text.strip():
            out.append(
                textwrap.fill(
                    " ".join(text.split()), WIDTH, initial_indent=f"  {name:<10} ", subsequent_indent=" " * 13
                )
            )
    return "\n".join(out) + "\n"
