"""Attributes every interval between two pages to the gate that was closed, and adds the shares up over the window.

The gates are enumerable, so elimination is sound: somebody waits, the engine moves, nothing outside holds the queue,
slots are free, prefill is not saturated: then KV space is closed. The conditions are data (rules/gates.yaml).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diagnoser.model import SignalValue
from diagnoser.rulebook.conditions import mask
from diagnoser.rulebook.rules import Gate, Rulebook
from diagnoser.signals.table import Row, Table, answers, interval_columns, window_columns
from diagnoser.signals.view import View

OPEN = "none"


@dataclass(slots=True)
class _Tally:
    """Seconds of one window by gate, and how long each gate was surely not the one."""

    seconds: float = 0.0
    waited: float = 0.0
    unknown: float = 0.0
    late_seconds: float = 0.0
    late_closed: float = 0.0


def attribute(views: Sequence[View], rows: Sequence[Row], book: Rulebook) -> list[dict[str, SignalValue]]:
    """Signals share_<gate>, excluded_<gate>, lead_<gate>, blocked_ratio, ... for every window."""
    columns, where = interval_columns(views)
    windows = window_columns(rows)
    for name, values in windows.items():
        columns.setdefault(name, [values[index] for index, _, _ in where])
    table = Table(columns, len(where))
    closed = {g.id: _closed(g, table) for g in book.gates}
    present = columns["queue_present_ratio"]
    late = book.number("late_part_ratio")
    tallies = [_Tally() for _ in views]
    shares = [dict.fromkeys(closed, 0.0) for _ in views]
    excluded = [dict.fromkeys(closed, 0.0) for _ in views]
    for i, (index, start, end) in enumerate(where):
        tally, seconds = tallies[index], end - start
        tally.seconds += seconds
        gate = next((g for g in book.gates if closed[g.id][i] is True), None)
        queue = present[i]
        weight = 1.0 if gate is not None and gate.whole else queue
        if weight is None:
            tally.unknown += seconds
            continue
        part = seconds * weight
        tally.waited += part
        window = views[index].window
        if start >= window.end - late * window.seconds:
            tally.late_seconds += seconds
            tally.late_closed += part
        if gate is not None:
            shares[index][gate.id] += part
        for g in book.gates:
            if closed[g.id][i] is False:
                excluded[index][g.id] += part
    return [_signals(t, s, x) for t, s, x in zip(tallies, shares, excluded, strict=True)]


def _closed(gate: Gate, table: Table) -> list[bool | None]:
    return [True] * table.rows if gate.when is None else answers(mask(gate.when, table))


def _signals(tally: _Tally, shares: dict[str, float], excluded: dict[str, float]) -> dict[str, SignalValue]:
    total = tally.seconds
    if total <= 0:
        return _missing(shares, "one page says nothing of the time between pages: sample longer")
    if tally.unknown > total / 2:
        return _missing(shares, "the pages do not tell how many requests wait")
    out = {"blocked_ratio": _ratio("blocked_ratio", sum(shares.values()) / total)}
    for gate, seconds in shares.items():
        others = max((s for g, s in shares.items() if g != gate), default=0.0)
        out[f"share_{gate}"] = _ratio(f"share_{gate}", seconds / total)
        out[f"lead_{gate}"] = _ratio(f"lead_{gate}", (seconds - others) / total)
        out[f"excluded_{gate}"] = _ratio(f"excluded_{gate}", excluded[gate] / tally.waited if tally.waited else 1.0)
    late = tally.late_closed / tally.late_seconds if tally.late_seconds else 0.0
    early_seconds = total - tally.late_seconds
    early = (tally.waited - tally.late_closed) / early_seconds if early_seconds > 0 else late
    out["late_blocked_ratio"] = _ratio("late_blocked_ratio", late)
    out["blocked_change_ratio"] = _ratio("blocked_change_ratio", late - early)
    return out


def _ratio(name: str, value: float) -> SignalValue:
    return SignalValue(name, "ratio", value)


def _missing(shares: dict[str, float], reason: str) -> dict[str, SignalValue]:
    names = ["blocked_ratio", "late_blocked_ratio", "blocked_change_ratio"]
    names += [f"{kind}_{gate}" for gate in shares for kind in ("share", "lead", "excluded")]
    return {name: SignalValue(name, "ratio", None, reason) for name in names}


def names(book: Rulebook) -> tuple[str, ...]:
    """The names of the signals that `attribute` adds."""
    return tuple(_missing({gate.id: 0.0 for gate in book.gates}, ""))
