"""The checklist: which answers a reader needs at once, and all of them with evidence when asked for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from diagnoser.model import Answer, CheckResult, Diagnosis, Evidence
from diagnoser.outputs.base import Look
from diagnoser.outputs.terminal.page import between, clipped, wrapped
from diagnoser.outputs.words import NO_BREAK
from diagnoser.units import quantity

STYLES = {Answer.YES: "bold", Answer.NO: "dim", Answer.UNKNOWN: "yellow"}
ANSWER = 9
"""Columns of the answer and the blank behind it."""
KINDS = ("checklist", "look-alike")
AT_LEAST = 3
"""Lines that are shown even if nothing speaks: a reader wants to see what was looked at."""


def checklist(diagnosis: Diagnosis, look: Look) -> list[Text]:
    """Every check with its evidence if the look is verbose, else what matters; the shorter the more terse the look."""
    if look.verbose:
        return [Text("  Checklist", "bold"), *_everything(diagnosis.checks, look)]
    if not diagnosis.scrapes or diagnosis.verdict.bottleneck == "unreachable":
        return []
    decisive = diagnosis.verdict.decisive
    lines, no, unknown = relevant(diagnosis)
    if look.terse:
        unknown = [check for check in lines if check.answer is Answer.UNKNOWN] + unknown
        lines = [check for check in lines if check.answer is not Answer.UNKNOWN]
    yes = [check for check in lines if check.id not in decisive] if look.terse > 1 else []
    lines = [check for check in lines if check not in yes]
    label = max((len(check.label) for check in lines), default=0) + 2
    out = [] if look.terse > 1 else [Text("  Checklist", "bold")]
    out += [line for check in lines for line in _short(check, label, look)]
    return out + [line for names in (yes, no, unknown) for line in _names(names, look)]


def relevant(diagnosis: Diagnosis) -> tuple[list[CheckResult], list[CheckResult], list[CheckResult]]:
    """(answers that get a line, what is surely not the case, what is not known), each in the order of the checklist.

    A line: every yes, and every unknown that the verdict's confidence rests on.
    """
    decisive = set(diagnosis.verdict.decisive)
    asked = [check for check in diagnosis.checks if check.kind in KINDS or check.id in decisive]
    lines = [check for check in asked if check.answer is Answer.YES]
    if len(lines) < AT_LEAST:
        plain = [check for check in asked if check.answer is Answer.NO and check.id not in decisive]
        lines += plain[: AT_LEAST - len(lines)]
    lines += [check for check in asked if check.answer is Answer.UNKNOWN and check.id in decisive]
    no = [check for check in asked if check.answer is Answer.NO and check.id in decisive]
    return lines, no, [check for check in asked if check.answer is Answer.UNKNOWN and check not in lines]


def _head(check: CheckResult, label: int) -> Text:
    style = STYLES[check.answer]
    return Text("  ").append(f"{check.answer.value:<{ANSWER}}", style).append(f"{check.label:<{label}}", style)


def _short(check: CheckResult, label: int, look: Look) -> list[Text]:
    """One line for an unknown answer or a terse look; the series it came from if there is room."""
    head, style = _head(check, label), "dim" if check.answer is Answer.NO else ""
    if look.terse or check.answer is Answer.UNKNOWN:
        return [clipped(check.reason, look.width, head, style)]
    lines = wrapped(check.reason, look.width, head, style=style) or [head]
    series = next((name for evidence in check.evidence for name in evidence.series), "")
    return [between(lines[0], Text(series, "dim"), look.width) or lines[0]] if series and len(lines) == 1 else lines


def _everything(checks: Sequence[CheckResult], look: Look) -> list[Text]:
    label = max((len(check.label) for check in checks), default=0) + 2
    out = []
    for check in checks:
        out += wrapped(check.reason, look.width, _head(check, label)) or [_head(check, label)]
        for evidence in check.evidence:
            out += wrapped(_words(evidence), look.width, Text(" " * (ANSWER + 2)), style="dim")
    return out


def _words(evidence: Evidence) -> str:
    if evidence.value is None:
        return f"{evidence.signal}: {evidence.missing_reason or 'not known'}"
    limit = f" ({evidence.op} {quantity(evidence.threshold, evidence.unit)}?)" if evidence.threshold is not None else ""
    origin = f" from {', '.join(dict.fromkeys(evidence.series))}" if evidence.series else ""
    return f"{evidence.signal} {quantity(evidence.value, evidence.unit)}{limit}{origin}"


def _names(checks: Sequence[CheckResult], look: Look) -> list[Text]:
    """Checks of one answer, named only."""
    if not checks:
        return []
    answer = checks[0].answer
    head = Text("  ").append(f"{answer.value:<{ANSWER}}", STYLES[answer])
    names = " · ".join(check.label.replace(" ", NO_BREAK) for check in checks)
    return (
        [clipped(names, look.width, head, "dim")] if look.terse > 1 else wrapped(names, look.width, head, style="dim")
    )
