"""One page: instant readings, the pool, facts, and which questions it cannot answer."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from diagnoser.model import Answer, Diagnosis, Snapshot
from diagnoser.outputs import words
from diagnoser.outputs.base import Look
from diagnoser.outputs.terminal.bars import bars
from diagnoser.outputs.terminal.details import facts
from diagnoser.outputs.terminal.page import between, wrapped
from diagnoser.units import count

NAME = 28


def onepage(found: Sequence[Diagnosis], snapshots: Sequence[Snapshot], notes: Sequence[str], look: Look) -> list[Text]:
    """All ranks of the page."""
    out: list[Text] = []
    for diagnosis, snapshot in zip(found, snapshots, strict=True):
        name = Text(words.who(diagnosis, len(found) > 1), "bold")
        out.append(between(name, Text("1 page", "dim"), look.width) or name)
        out += [Text(), Text("  ").append(words.clean(diagnosis.verdict.headline), "bold magenta")]
        out += [line for sentence in diagnosis.verdict.because for line in wrapped(sentence, look.width)]
        out += [Text(), *bars(diagnosis, look), Text(), *_readings(snapshot, look), *facts(diagnosis, look)]
        out += [Text(), *_open_questions(diagnosis, look), *_missing(snapshot, look), Text()]
    return out + [line for note in notes for line in wrapped(note, look.width, Text("  Note  ", "yellow"))]


def _readings(snapshot: Snapshot, look: Look) -> list[Text]:
    """Gauges as they are; counters as what they are, totals since the process started."""
    out = [Text("  On the page", "bold")]
    for name, reading in snapshot.readings.items():
        shown = f"{reading.value:.4g}" if name.endswith("_ratio") else count(reading.value)
        since = " since the start" if name.endswith("_total") else ""
        line = Text(f"  {name:<{NAME}} {shown}{since}")
        out.append(between(line, Text(reading.series, "dim"), look.width) or line)
    return out


def _open_questions(diagnosis: Diagnosis, look: Look) -> list[Text]:
    asked = [check for check in diagnosis.checks if check.kind in ("checklist", "look-alike")]
    unknown = " · ".join(check.label.replace(" ", words.NO_BREAK) for check in asked if check.answer is Answer.UNKNOWN)
    return [Text("  One page cannot tell", "bold"), *wrapped(unknown, look.width)]


def _missing(snapshot: Snapshot, look: Look) -> list[Text]:
    if not look.verbose:
        return []
    out = [Text(), Text("  Not on the page", "bold")]
    for name, reason in snapshot.missing.items():
        out += wrapped(reason, look.width, Text(f"  {name:<{NAME}} "), style="dim")
    return out
