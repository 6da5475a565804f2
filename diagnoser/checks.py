"""Answers the checklist: every check of the rule files over the signals, three-valued, each with its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnoser.model import Answer, CheckResult, Evidence, SignalValue
from diagnoser.rulebook.conditions import Compare, leaves, mask
from diagnoser.rulebook.rules import Check, Rulebook
from diagnoser.rulebook.text import fill
from diagnoser.signals.table import Row, Table, answers, window_columns


def answer_all(
    rows: Sequence[Row], words: Sequence[Mapping[str, str]], book: Rulebook
) -> list[tuple[CheckResult, ...]]:
    """The whole checklist for every window. One check is one pass over all windows."""
    found = list(answers_by_check(Table(window_columns(rows), len(rows)), book.checks).values())
    shown = [_shown(check) for check in book.checks]
    return [
        tuple(
            _result(check, found[c][i], tuple(_seen(leaf, row) for leaf in shown[c]), row, words[i])
            for c, check in enumerate(book.checks)
        )
        for i, row in enumerate(rows)
    ]


def answers_by_check(table: Table, checks: Sequence[Check]) -> dict[str, list[Answer]]:
    """The answer of each check for every row."""
    return {check.id: _answers(check, table) for check in checks}


def _answers(check: Check, table: Table) -> list[Answer]:
    yes = answers(mask(check.yes, table))
    if check.no is None:
        return [Answer.UNKNOWN if y is None else Answer.YES if y else Answer.NO for y in yes]
    no = answers(mask(check.no, table))
    return [Answer.YES if y else Answer.NO if n else Answer.UNKNOWN for y, n in zip(yes, no, strict=True)]


def _result(
    check: Check, answer: Answer, evidence: tuple[Evidence, ...], row: Row, words: Mapping[str, str]
) -> CheckResult:
    reason, whole = fill(check.text[answer.value], row, words)
    if answer is Answer.UNKNOWN:
        reason = _why_unknown(reason, whole, evidence)
    return CheckResult(check.id, check.question, answer, reason, evidence, check.severity, check.label, check.kind)


def _shown(check: Check) -> tuple[Compare, ...]:
    """What stands as its evidence: one comparison a signal, the first that is made; without operator if none is."""
    conditions = [check.yes] if check.no is None else [check.yes, check.no]
    compared = [leaf for c in conditions for leaf in leaves(c) if isinstance(leaf, Compare)]
    first = {leaf.signal: leaf for leaf in reversed(compared)}
    ordered = dict.fromkeys([*check.evidence, *(leaf.signal for leaf in compared)])
    return tuple(first.get(name, Compare(name, "", 0.0)) for name in ordered)


def _seen(leaf: Compare, row: Row) -> Evidence:
    value = row.get(leaf.signal) or SignalValue(leaf.signal, "", None, "no such signal")
    threshold = leaf.value if leaf.op else None
    return Evidence(leaf.signal, value.value, value.unit, leaf.op, threshold, value.series, value.missing_reason)


def _why_unknown(reason: str, whole: bool, evidence: Sequence[Evidence]) -> str:
    missing = list(dict.fromkeys(e.missing_reason for e in evidence if e.missing_reason))
    if not missing or missing[0] in reason:
        return reason
    return f"{reason}: {missing[0]}" if whole else missing[0]
