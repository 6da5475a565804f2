"""For people at a terminal: the answer in the first three lines, then why, how full, the checklist and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from diagnoser.outputs import words
from diagnoser.outputs.base import Look, Output, Report, urgency, worst_first

if TYPE_CHECKING:
    from rich.text import Text

    from diagnoser.model import Diagnosis

FULL_BLOCKS = 3
"""Engines shown in full below the summary unless asked for more."""
BOUND = (2, 4)
"""Urgencies of those with a bottleneck."""
REMEDIES = 3


def render(report: Report, look: Look) -> str:
    """The whole report, as long as it may be; on a screen the longest version that fits."""
    from diagnoser.outputs.terminal.page import rendered

    lines = page(report, look)
    for terse in (1, 2):
        if look.height and len(lines) > look.height:
            lines = page(report, replace(look, terse=terse))
    return rendered(lines, look)


def page(report: Report, look: Look) -> list[Text]:
    """All lines: a summary where there are several engines, the engines in full, the timeline, notes."""
    from rich.text import Text

    from diagnoser.outputs.terminal.page import wrapped
    from diagnoser.outputs.terminal.summary import several_ranks, summary
    from diagnoser.outputs.terminal.timeline import timeline

    found, many = worst_first(report.diagnoses), several_ranks(report.diagnoses)
    shown = _in_full(found, look)
    parts = [summary(found, look)] if len(found) > 1 else []
    parts += [block(one, look, one.engine.target in many) for one in shown]
    parts.append(_in_brief(found, shown, look))
    parts.append(timeline(report.timeline, look))
    parts.append([line for note in report.notes for line in wrapped(note, look.width, Text("  Note  ", "yellow"))])
    return _joined([part for part in parts if part])


def _in_full(found: Sequence[Diagnosis], look: Look) -> Sequence[Diagnosis]:
    """One engine always; of several the worst of every kind of bottleneck. All of them when asked for."""
    if len(found) == 1 or look.verbose:
        return found
    bound = [one for one in found if urgency(one) in BOUND]
    return list({one.verdict.rule: one for one in reversed(bound)}.values())[::-1][:FULL_BLOCKS]


def _in_brief(found: Sequence[Diagnosis], shown: Sequence[Diagnosis], look: Look) -> list[Text]:
    """Why nothing can be said of some of the others, and how many are left to the table."""
    from rich.text import Text

    from diagnoser.outputs.terminal.summary import SILENT, silent

    others = [one for one in found if one not in shown]
    left = sum(urgency(one) not in SILENT for one in others)
    more = [Text(f"  {left} more in the table: -v shows all in full.", "dim")] if left else []
    return silent(others, look) + more


def _joined(parts: Sequence[list[Text]]) -> list[Text]:
    from rich.text import Text

    return [line for number, part in enumerate(parts) for line in ([Text()] if number else []) + part]


def block(diagnosis: Diagnosis, look: Look, ranks: bool) -> list[Text]:
    """One engine rank in full."""
    from diagnoser.outputs.terminal.bars import bars
    from diagnoser.outputs.terminal.checklist import checklist
    from diagnoser.outputs.terminal.details import details
    from diagnoser.outputs.terminal.whatif import whatif

    parts = [
        _head(diagnosis, look, ranks),
        bars(diagnosis, look) + _findings(diagnosis, look),
        checklist(diagnosis, look),
    ]
    parts += [_remedies(diagnosis, look), whatif(diagnosis, look)]
    if look.verbose:
        parts.append(details(diagnosis, look))
    return _joined([part for part in parts if part])


def _head(diagnosis: Diagnosis, look: Look, ranks: bool) -> list[Text]:
    from rich.text import Text

    from diagnoser.outputs.terminal.page import URGENCY, between, wrapped

    verdict, style = diagnosis.verdict, URGENCY[urgency(diagnosis)]
    name, when = Text(words.who(diagnosis, ranks), "bold"), Text(words.span(diagnosis), "dim")
    first = between(name, when, look.width)
    headline, gravity = Text("  ").append(words.clean(verdict.headline), style), Text(words.gravity(diagnosis), style)
    second = between(headline, gravity, look.width)
    lines = [first, Text()] if first is not None else [_cut(name, look.width), Text("  ").append_text(when)]
    lines += [second] if second is not None else [_cut(headline, look.width), Text("  ").append_text(gravity)]
    for sentence in verdict.because[: 2 if look.terse > 1 else None]:
        lines += wrapped(sentence, look.width)
    return lines


def _cut(text: Text, width: int) -> Text:
    text.truncate(width, overflow="ellipsis")
    return text


def _findings(diagnosis: Diagnosis, look: Look) -> list[Text]:
    from rich.text import Text

    from diagnoser.outputs.terminal.page import SEVERITY, wrapped

    out: list[Text] = []
    for finding in diagnosis.findings:
        head = Text("  ").append("Also  ", SEVERITY[finding.severity])
        out += wrapped(f"{finding.code.replace('_', ' ')}: {finding.text}", look.width, head)
    return out


def _remedies(diagnosis: Diagnosis, look: Look) -> list[Text]:
    from rich.text import Text

    from diagnoser.outputs.terminal.page import clipped, wrapped

    title = "  Do, in this order" + (" (-v: what it brings and costs)" if look.terse else "")
    out = [Text(title, "bold")] if diagnosis.remedies and look.terse < 2 else []
    for number, remedy in enumerate(diagnosis.remedies if look.verbose else diagnosis.remedies[:REMEDIES], 1):
        head = Text(f"  {number}  ").append(f"{remedy.action}: ", "bold")
        if look.terse > 1:
            out.append(clipped(remedy.flag, look.width, head))
            continue
        out += wrapped(remedy.flag, look.width, head, hang=5)
        costs = "" if remedy.side_effect == "none" else f"; costs: {remedy.side_effect}"
        out += [] if look.terse else wrapped(f"{remedy.effect}{costs}", look.width, Text(" " * 5), style="dim")
    for text in diagnosis.not_remedies[: 1 if look.terse else None]:
        head = Text("  ").append("Not: ", "bold")
        out += [clipped(text, look.width, head)] if look.terse else wrapped(text, look.width, head)
    return out


OUTPUT = Output("text", "text/plain; charset=utf-8", render)
