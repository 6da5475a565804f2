"""Attributes every interval between two pages to the gate that was closed, and adds the shares up over the window.

The gates are enumerable, so elimination is sound: somebody waits, the engine moves, nothing outside holds the queue,
slots are free, prefill is not saturated: then KV space is closed. The conditions are data (rules/gates.yaml).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from diagnoser.model import SignalValue
from diagnoser.rulebook.conditions import Compare, leaves, mask
from diagnoser.rulebook.rules import Gate, Rulebook
from diagnoser.signals.table import Row, Table, answers, interval_columns, window_columns
from diagnoser.signals.view import View


@dataclass(slots=True)
class _Tally:
    """Seconds of one window: by closed gate, and for how long of the waiting each gate was surely not the one."""

    shares: dict[str, float]
    excluded: dict[str, float]
    seconds: float = 0.0
    waited: float = 0.0
    unknown: float = 0.0
    late_seconds: float = 0.0
    late_waited: float = 0.0

    @classmethod
    def empty(cls, gates: Sequence[str]) -> _Tally:
        """Nothing counted yet."""
        return cls(dict.fromkeys(gates, 0.0), dict.fromkeys(gates, 0.0))

    def add(self, seconds: float, queue: float | None, signs: list[tuple[Gate, bool | None]], *, late: bool) -> None:
        """Counts one interval. `queue` is the part of it with somebody waiting, None if unknown."""
        self.seconds += seconds
        closed = next((sign for sign, holds in signs if holds is True), None)
        part = 1.0 if closed is not None and closed.whole else queue
        if part is None:
            self.unknown += seconds
            return
        self.waited += part * seconds
        if late:
            self.late_seconds += seconds
            self.late_waited += part * seconds
        if closed is not None:
            self.shares[closed.gate] += part * seconds
        for gate in self.excluded:
            if all(holds is False for sign, holds in signs if sign.gate == gate):
                self.excluded[gate] += part * seconds


UPPER = "queue_upper_ratio"
"""Bounds the time in which somebody can have waited: pages far apart catch a moment's queue by chance."""
Where = tuple[int, float, float]
"""An interval: index of its window, start and end (unix seconds)."""


def attribute(views: Sequence[View], rows: Sequence[Row], book: Rulebook) -> list[dict[str, SignalValue]]:
    """Signals share_<gate>, lead_<gate>, excluded_<gate>, blocked_ratio, ... for every window."""
    columns, where = interval_columns(views)
    windows = [(view.window.end, view.window.seconds) for view in views]
    return attribute_columns(columns, where, windows, window_columns(rows), book)


def attribute_columns(
    intervals: Mapping[str, list[float | None]],
    where: Sequence[Where],
    windows: Sequence[tuple[float, float]],
    signals: Mapping[str, Sequence[float | None]],
    book: Rulebook,
) -> list[dict[str, SignalValue]]:
    """The same from columns: one entry an interval, `windows` (end, seconds), and one entry a window of `signals`."""
    columns = dict(intervals)
    for name in _asked(book) & signals.keys():
        columns.setdefault(name, [signals[name][index] for index, _, _ in where])
    table = Table(columns, len(where))
    closed = [(sign, _closed(sign, table)) for sign in book.gates]
    tallies = [_Tally.empty(book.gate_names()) for _ in windows]
    late, trust = book.number("late_part_ratio"), _trust(columns, where, signals.get(UPPER), len(windows))
    for i, (index, start, end) in enumerate(where):
        window_end, seconds = windows[index]
        queue = columns["queue_present_ratio"][i]
        tallies[index].add(
            end - start,
            None if queue is None else queue * trust[index],
            [(sign, holds[i]) for sign, holds in closed],
            late=start >= window_end - late * seconds,
        )
    return [_signals(tally) for tally in tallies]


def _trust(
    columns: Mapping[str, list[float | None]],
    where: Sequence[Where],
    upper: Sequence[float | None] | None,
    windows: int,
) -> list[float]:
    """How much of the queue that the pages show there can have been, a window: 1 where nothing bounds it."""
    seen, total = [0.0] * windows, [0.0] * windows
    for (index, start, end), queue in zip(where, columns.get("queue_present_ratio", ()), strict=True):
        seen[index] += (queue or 0.0) * (end - start)
        total[index] += end - start
    most = upper or [None] * windows
    return [
        1.0 if bound is None or not shown else min(1.0, bound * time / shown)
        for bound, shown, time in zip(most, seen, total, strict=True)
    ]


def never_waited(book: Rulebook, standing: float) -> dict[str, float]:
    """The same of a window without a queue, of which the part `standing` an engine stood still."""
    gates = book.gate_names()
    whole = next((gate.gate for gate in book.gates if gate.whole), "")
    share = {gate: standing if gate == whole else 0.0 for gate in gates}
    out = {"blocked_ratio": standing, "late_blocked_ratio": standing, "blocked_change_ratio": 0.0}
    for gate in gates:
        others = max((s for g, s in share.items() if g != gate), default=0.0)
        out |= {f"share_{gate}": share[gate], f"lead_{gate}": share[gate] - others}
        out[f"excluded_{gate}"] = 0.0 if standing and gate == whole else 1.0
    return out


def _asked(book: Rulebook) -> set[str]:
    """Signals that the gates' conditions name."""
    found = [leaf for gate in book.gates if gate.when is not None for leaf in leaves(gate.when)]
    return {leaf.signal for leaf in found if isinstance(leaf, Compare)}


def _closed(gate: Gate, table: Table) -> list[bool | None]:
    return [True] * table.rows if gate.when is None else answers(mask(gate.when, table))


def _signals(tally: _Tally) -> dict[str, SignalValue]:
    total, shares = tally.seconds, tally.shares
    if total <= 0:
        return _missing(shares, "one page says nothing of the time between pages: sample longer")
    if tally.unknown > total / 2:
        return _missing(shares, "the pages do not tell how many requests wait")
    out = {"blocked_ratio": sum(shares.values()) / total}
    for gate, seconds in shares.items():
        others = max((s for g, s in shares.items() if g != gate), default=0.0)
        out[f"share_{gate}"] = seconds / total
        out[f"lead_{gate}"] = (seconds - others) / total
        out[f"excluded_{gate}"] = tally.excluded[gate] / tally.waited if tally.waited else 1.0
    late = tally.late_waited / tally.late_seconds if tally.late_seconds else 0.0
    early_seconds = total - tally.late_seconds
    early = (tally.waited - tally.late_waited) / early_seconds if early_seconds > 0 else late
    out |= {"late_blocked_ratio": late, "blocked_change_ratio": late - early}
    return {name: SignalValue(name, "ratio", value) for name, value in out.items()}


def _missing(gates: Iterable[str], reason: str) -> dict[str, SignalValue]:
    names = ["blocked_ratio", "late_blocked_ratio", "blocked_change_ratio"]
    names += [f"{kind}_{gate}" for gate in gates for kind in ("share", "lead", "excluded")]
    return {name: SignalValue(name, "ratio", None, reason) for name in names}


def names(book: Rulebook) -> tuple[str, ...]:
    """The names of the signals that `attribute` adds."""
    return tuple(_missing(book.gate_names(), ""))
