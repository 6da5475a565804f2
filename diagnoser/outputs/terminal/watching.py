"""The live table of `diagnose watch`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from diagnoser.model import Diagnosis
from diagnoser.outputs import words
from diagnoser.outputs.base import Look, urgency, worst_first
from diagnoser.outputs.terminal.page import URGENCY, between, wrapped
from diagnoser.outputs.terminal.summary import Ages, several_ranks, silent, summary
from diagnoser.units import duration

MOST_SILENT = 6
"""Lines about targets that do not answer."""


def watching(found: Sequence[Diagnosis], ages: Ages, window: float, look: Look) -> list[Text]:
    """Head, table, and why the worst of them is where it is."""
    worst = worst_first(found)[0]
    left = Text(f"{len(found)} {'engine' if len(found) == 1 else 'engines'}, window {duration(window)}", "bold")
    right = Text(f"{words.clock(worst.at)}, Ctrl-C ends", "dim")
    lines = [
        between(left, right, look.width) or left,
        Text(),
        *summary(found, look, ages),
        *silent(found, look)[:MOST_SILENT],
    ]
    if urgency(worst) in (2, 4):
        lines += [Text(), Text("  ").append(words.who(worst, worst.engine.target in several_ranks(found)), "bold")]
        lines += [Text("  ").append(words.clean(worst.verdict.headline), URGENCY[urgency(worst)])]
        lines += [line for sentence in worst.verdict.because for line in wrapped(sentence, look.width)]
    return lines
