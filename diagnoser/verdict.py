"""Turns answers into one verdict by the decision list of rules/verdicts.yaml: headline, reasons,
severity, confidence, remedies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diagnoser.errors import RuleError
from diagnoser.model import CheckResult, Confidence, Fact, Finding, L2State, Remedy, Severity, Verdict
from diagnoser.rulebook.conditions import holds
from diagnoser.rulebook.rules import Rulebook, VerdictRule
from diagnoser.rulebook.text import fill
from diagnoser.signals.table import Row

SENTENCES = 3
"""The reasons of a verdict: as many as a person reads at three in the morning."""


@dataclass(frozen=True, slots=True)
class Case:
    """What one window led to so far: the input of the decision."""

    row: Row
    checks: tuple[CheckResult, ...]
    words: Mapping[str, str]
    family: str
    facts: Mapping[str, Fact]
    l2: L2State


def decide(case: Case, book: Rulebook) -> tuple[Verdict, tuple[Finding, ...], tuple[Remedy, ...], tuple[str, ...]]:
    """Verdict, findings beside it, remedies in order, and what would not help. Raises RuleError if no entry matches."""
    answers = {check.id: check.answer.value for check in case.checks}
    rule = next((r for r in book.verdicts if holds(r.when, answers)), None)
    if rule is None:
        raise RuleError("verdicts.yaml", "no entry matches: the last one must always hold (`all: []`)")
    words = {**case.words, "mode": rule.mode or ""}
    verdict = Verdict(
        bottleneck=rule.bottleneck,
        mode=rule.mode,
        l2=case.l2,
        shares=_shares(case.row, book),
        trend=_trend(answers),
        severity=_severity(rule, answers),
        confidence=_confidence(rule, answers),
        headline=fill(rule.headline, case.row, words)[0],
        because=_because(rule, case.row, words),
        rule=rule.id,
        decisive=tuple(dict.fromkeys((*rule.direct, *rule.exclude))),
    )
    not_remedies = tuple(
        fill(text, case.row, words)[0] for text, when in rule.not_remedies if when is None or holds(when, answers)
    )
    return verdict, _findings(case, book), _remedies(rule, case, book), not_remedies


def _shares(row: Row, book: Rulebook) -> dict[str, float]:
    """Closed share of every gate that was closed at all, and "none" for the rest; they sum to 1."""
    found = {gate: row[f"share_{gate}"].value for gate in book.gate_names() if f"share_{gate}" in row}
    shares = {gate: round(share, 4) for gate, share in found.items() if share}
    if not found or all(share is None for share in found.values()):
        return {}
    return {**shares, "none": round(max(0.0, 1.0 - sum(shares.values())), 4)}


def _trend(answers: Mapping[str, str]) -> str:
    if answers.get("getting_worse") == "yes":
        return "rising"
    return "recovering" if answers.get("recovering") == "yes" else "steady"


def _severity(rule: VerdictRule, answers: Mapping[str, str]) -> Severity:
    return next(severity for severity, when in rule.severity if when is None or holds(when, answers))


def _confidence(rule: VerdictRule, answers: Mapping[str, str]) -> Confidence:
    """high: direct evidence and every look-alike answered no. low: the rule itself calls it a suspicion."""
    if rule.suspected is not None and holds(rule.suspected, answers):
        return "low"
    direct = not rule.direct or any(answers.get(check) == "yes" for check in rule.direct)
    excluded = all(answers.get(check) == "no" for check in rule.exclude)
    if direct and excluded:
        return "high"
    return "medium" if direct or excluded else "low"


def _because(rule: VerdictRule, row: Row, words: Mapping[str, str]) -> tuple[str, ...]:
    """The first sentences whose numbers are all known."""
    filled = (fill(text, row, words) for text in rule.because)
    return tuple(text for text, whole in filled if whole and text)[:SENTENCES]


def _findings(case: Case, book: Rulebook) -> tuple[Finding, ...]:
    codes = {check.id: check.finding for check in book.checks if check.finding}
    return tuple(
        Finding(codes[check.id], check.severity, check.reason, check.evidence)
        for check in case.checks
        if check.id in codes and check.answer.value == "yes"
    )


def _remedies(rule: VerdictRule, case: Case, book: Rulebook) -> tuple[Remedy, ...]:
    out: list[Remedy] = []
    for name in rule.remedies:
        remedy = book.remedies.get(name)
        flag = None if remedy is None else remedy.flags.get(case.family, remedy.flags.get("any"))
        if remedy is None or flag is None or _done(remedy.done_if, case.facts):
            continue
        out.append(Remedy(remedy.id, remedy.action, flag, remedy.effect, remedy.side_effect))
    return tuple(out)


def _done(conditions: Sequence[tuple[str, str]], facts: Mapping[str, Fact]) -> bool:
    return any(name in facts and str(facts[name].value).lower().startswith(value.lower()) for name, value in conditions)
