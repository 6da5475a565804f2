"""A recording at a glance: for every engine rank, how long which gate was closed, and the verdicts in their order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from diagnoser.outputs.base import Look, Moment
from diagnoser.outputs.terminal.page import URGENCY, wrapped
from diagnoser.outputs.words import GATES, NO_BREAK, clock, day

LEVELS = " ▁▂▃▄▅▆▇█"
LABEL = 14


def timeline(moments: Sequence[Moment], look: Look) -> list[Text]:
    """Closed shares as one character an instant, then the run of verdicts. Nothing for a single instant."""
    times = sorted({moment.at for moment in moments})
    if len(times) < 2:
        return []
    out = (
        []
        if look.terse > 1
        else [
            Text("  Timeline", "bold").append(
                f"  {len(times)} windows, {day(times[0])} {clock(times[0])} to {clock(times[-1])}", "dim"
            )
        ]
    )
    by_engine: dict[tuple[str, str], list[Moment]] = {}
    for moment in moments:
        by_engine.setdefault((moment.target, moment.rank), []).append(moment)
    for (target, rank), found in by_engine.items():
        if len(by_engine) > 1:
            out.append(Text(f"  {target} rank {rank}", "bold"))
        out += _shares(found, look) + _verdicts(found, look)
    return out


def _shares(moments: Sequence[Moment], look: Look) -> list[Text]:
    gates = dict.fromkeys(gate for moment in moments for gate in moment.shares if gate != "none")
    room = look.width - LABEL - 2
    out = []
    for gate in gates:
        series = _squeezed([moment.shares.get(gate, 0.0) for moment in moments], room)
        if max(series) >= 0.05:
            marks = "".join(LEVELS[round(min(1.0, share) * (len(LEVELS) - 1))] for share in series)
            out.append(Text("  ").append(f"{GATES.get(gate, gate):<{LABEL - 2}}").append(marks.rstrip(), "red"))
    return out


def _squeezed(values: Sequence[float], room: int) -> list[float]:
    """At most `room` values: the highest of each stretch, so that a short incident stays visible."""
    step = -(-len(values) // room)
    return [max(values[i : i + step]) for i in range(0, len(values), step)]


def _verdicts(moments: Sequence[Moment], look: Look) -> list[Text]:
    runs = [
        (run[0], len(run))
        for _, group in groupby(moments, key=lambda m: m.headline.split(":")[0])
        if (run := list(group))
    ]
    shown = [f"{clock(first.at)} {first.headline.split(':')[0]}" for first, _ in runs]
    style = URGENCY[max(first.urgency for first, _ in runs)].replace("bold ", "")
    text = " → ".join(run.replace(" ", NO_BREAK) for run in shown)
    return wrapped(text, look.width, Text("  ").append(f"{'verdict':<{LABEL - 2}}"), style=style)
