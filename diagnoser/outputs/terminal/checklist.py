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
    """Every check with its evidence if the look is verbose, else what matters, one line an answer."""
    if look.verbose:
        return [Text("  Checklist", "bold"), *_everything(diagnosis.checks, look)]
    if not diagnosis.scrapes or diagnosis.verdict.bottleneck == "unreachable":
        return []
    lines, no, unknown = relevant(diagnosis)
    label = max((len(check.label) for check in lines), default=0) + 2
    out = [Text("  Checklist", "bold"), *(_short(check, label, look) for check in lines)]
    return out + _names("no", no, look) + _names("unknown", unknown, look)


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


def _short(check: CheckResult, label: int, look: Look) -> Text:
    """One line; the series it came from if there is room."""
    line = clipped(check.reason, look.width, _head(check, label), "dim" if check.answer is Answer.NO else "")
    series = next((name for evidence in check.evidence for name in evidence.series), "")
    return between(line, Text(series, "dim"), look.width) or line if series else line


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


def _names(answer: str, checks: Sequence[CheckResult], look: Look) -> list[Text]:
    head = Text("  ").append(f"{answer:<{ANSWER}}", STYLES[Answer(answer)])
    return wrapped(" · ".join(check.label.replace(" ", NO_BREAK) for check in checks), look.width, head, style="dim")
