"""Signals as columns: one row a window (or an interval), so that a rule is evaluated for one engine and for 10,000
alike.

pandas' nullable types bring the three-valued (Kleene) logic: NA & False is False, NA | True is True, else NA stays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from diagnoser.errors import DiagnoserError
from diagnoser.model import SignalValue
from diagnoser.signals.base import IntervalSignal, Params, intervals, signals
from diagnoser.signals.view import Found, View

Row = Mapping[str, SignalValue]
COMPARE: Mapping[str, Callable[[Any, float], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
FAILURES = (ArithmeticError, LookupError, ValueError, TypeError, DiagnoserError)
"""What a signal may raise on strange numbers; it is then missing, and the others stand."""


class Table:
    """Columns of numbers, NA where a value is missing."""

    def __init__(self, columns: Mapping[str, Sequence[float | None]], rows: int) -> None:
        self._given, self._columns = columns, dict[str, Any]()
        self.rows = rows

    def compare(self, signal: str, op: str, value: float) -> pd.Series:
        """`signal op value` for every row: True, False or NA. An unknown column is NA throughout."""
        if signal not in self._given:
            return self.constant(None)
        if signal not in self._columns:  # rules ask for a part of the signals, some of them often
            self._columns[signal] = pd.array(list(self._given[signal]), dtype="Float64")
        return pd.Series(COMPARE[op](self._columns[signal], value))

    def constant(self, value: bool | None) -> pd.Series:
        """The same answer for every row."""
        return pd.Series(pd.array([value] * self.rows, dtype="boolean"))


def answers(mask: pd.Series) -> list[bool | None]:
    """A mask as plain values, None for NA."""
    plain: list[bool | None] = mask.to_numpy(dtype=object, na_value=None).tolist()  # type: ignore[call-overload]
    return plain


def evaluate(view: View, params: Params) -> dict[str, SignalValue]:
    """Every window signal of one window.

    A signal that fails is missing with the error as its reason; the others stand.
    """
    out: dict[str, SignalValue] = {}
    for signal in signals():
        try:
            result = signal.compute(view, params)
        except FAILURES as error:
            out[signal.name] = SignalValue(signal.name, signal.unit, None, f"could not be computed: {error!r}")
            continue
        if isinstance(result, Found):
            out[signal.name] = SignalValue(signal.name, signal.unit, result.value, "", result.series)
        else:
            out[signal.name] = SignalValue(signal.name, signal.unit, None, result.reason)
    return out


def interval_columns(views: Sequence[View]) -> tuple[dict[str, list[float | None]], list[tuple[int, float, float]]]:
    """Every interval of every window as one row: columns of interval signals, and (window index, start,
    end) of each row.
    """
    where: list[tuple[int, float, float]] = []
    columns: dict[str, list[float | None]] = {s.name: [] for s in intervals()}
    for index, view in enumerate(views):
        for i, (a, b) in enumerate(view.pairs()):
            where.append((index, a.at, b.at))
            for signal in intervals():
                columns[signal.name].append(_interval(signal, view, i))
    return columns, where


def _interval(signal: IntervalSignal, view: View, i: int) -> float | None:
    try:
        return signal.compute(view, i)
    except FAILURES:
        return None


def window_columns(rows: Sequence[Row]) -> dict[str, list[float | None]]:
    """One column a signal from one row a window."""
    names = {name for row in rows for name in row}
    return {name: [row[name].value if name in row else None for row in rows] for name in names}
