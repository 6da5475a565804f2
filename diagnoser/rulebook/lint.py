"""What reading alone cannot see: a rule that names a signal, check, remedy or text field which does not exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from diagnoser.errors import RuleError
from diagnoser.rulebook.conditions import CheckIs, Compare, Condition, leaves
from diagnoser.rulebook.rules import Check, Rulebook, VerdictRule
from diagnoser.rulebook.text import fields
from diagnoser.units import FORMATS


def problems(
    book: Rulebook, signals: Collection[str], intervals: Collection[str], words: Collection[str]
) -> tuple[RuleError, ...]:
    """Errors of the files plus every dangling name.

    `intervals` are the signals that only gates may use, `words` the names that texts may use besides signals.
    """
    found: list[RuleError] = list(book.errors)
    for gate in book.gates:
        found += [
            RuleError("gates.yaml", f"gate {gate.id}: no signal {n!r}")
            for n in _signals(gate.when, (*signals, *intervals))
        ]
    for check in book.checks:
        found += [RuleError(check.path, reason) for reason in _check(check, signals, words)]
    ids = {check.id for check in book.checks}
    for rule in book.verdicts:
        found += [
            RuleError("verdicts.yaml", f"{rule.id}: {reason}") for reason in _verdict(rule, ids, book, signals, words)
        ]
    used = {
        leaf.threshold for condition in _conditions(book) for leaf in leaves(condition) if isinstance(leaf, Compare)
    }
    for name in sorted(set(book.thresholds) - used):
        if book.thresholds[name].unit != "parameter" and not isinstance(book.thresholds[name].value, tuple):
            found.append(
                RuleError("thresholds.yaml", f"{name} is used by no rule (parameters of signals say `unit: parameter`)")
            )
    return tuple(found)


def _conditions(book: Rulebook) -> Iterator[Condition]:
    for gate in book.gates:
        if gate.when is not None:
            yield gate.when
    for check in book.checks:
        yield check.yes
        if check.no is not None:
            yield check.no


def _signals(condition: Condition | None, signals: Collection[str]) -> list[str]:
    if condition is None:
        return []
    return [leaf.signal for leaf in leaves(condition) if isinstance(leaf, Compare) and leaf.signal not in signals]


def _check(check: Check, signals: Collection[str], words: Collection[str]) -> Iterator[str]:
    for name in (*_signals(check.yes, signals), *_signals(check.no, signals)):
        yield f"no signal {name!r}"
    yield from (f"evidence: no signal {name!r}" for name in check.evidence if name not in signals)
    for text in check.text.values():
        yield from _text(text, signals, words)


def _text(text: str, signals: Collection[str], words: Collection[str]) -> Iterator[str]:
    for name, spec in fields(text):
        if name not in signals and name not in words:
            yield f"text asks for {{{name}}}, which is no signal"
        if spec and spec not in FORMATS:
            yield f"text uses format {spec!r}, must be one of {', '.join(FORMATS)}"


def _verdict(
    rule: VerdictRule, ids: Collection[str], book: Rulebook, signals: Collection[str], words: Collection[str]
) -> Iterator[str]:
    conditions = [rule.when, *(c for _, c in rule.severity if c), *(c for _, c in rule.not_remedies if c)]
    asked = [leaf.check for c in conditions for leaf in leaves(c) if isinstance(leaf, CheckIs)]
    for name in (*asked, *rule.direct, *rule.exclude):
        if name not in ids:
            yield f"no check {name!r}"
    yield from (f"no remedy {name!r}" for name in rule.remedies if name not in book.remedies)
    for text in (rule.headline, *rule.because, *(t for t, _ in rule.not_remedies)):
        yield from _text(text, signals, words)
