"""The condition language of the rule files: `signal op threshold`, `check is answer`, joined by all, any, not.

No arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

OPS = ("==", "!=", ">", ">=", "<", "<=")


class Columns(Protocol):
    """What a condition is evaluated on: masks support &, | and ~ with three-valued logic."""

    def compare(self, signal: str, op: str, value: float) -> Any:
        """Mask of `signal op value`."""

    def constant(self, value: bool | None) -> Any:
        """Mask of one answer for every row."""


@dataclass(frozen=True, slots=True)
class Compare:
    """`signal op value`.

    `threshold` names the entry of thresholds.yaml that the value came from, "" for a bare 0 or 1.
    """

    signal: str
    op: str
    value: float
    threshold: str = ""


@dataclass(frozen=True, slots=True)
class CheckIs:
    """The check gave that answer."""

    check: str
    answer: str


@dataclass(frozen=True, slots=True)
class Join:
    """all or any of several conditions; `all` of nothing is true."""

    how: str
    items: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown stays unknown."""

    item: Condition


Condition = Compare | CheckIs | Join | Not


def mask(condition: Condition, columns: Columns) -> Any:
    """Evaluates a condition over signals, column-wise."""
    if isinstance(condition, Compare):
        return columns.compare(condition.signal, condition.op, condition.value)
    if isinstance(condition, Not):
        return ~mask(condition.item, columns)
    if isinstance(condition, CheckIs):
        raise TypeError(f"a condition over signals cannot ask for check {condition.check}")
    out = columns.constant(condition.how == "all")
    for item in condition.items:
        out = (out & mask(item, columns)) if condition.how == "all" else (out | mask(item, columns))
    return out


def holds(condition: Condition, answers: Mapping[str, str]) -> bool:
    """Evaluates a condition over check answers. An absent check is unknown, and unknown is never taken for no."""
    if isinstance(condition, CheckIs):
        return answers.get(condition.check, "unknown") == condition.answer
    if isinstance(condition, Not):
        return not holds(condition.item, answers)
    if isinstance(condition, Compare):
        raise TypeError(f"a condition over checks cannot ask for signal {condition.signal}")
    results = (holds(item, answers) for item in condition.items)
    return all(results) if condition.how == "all" else any(results)


def leaves(condition: Condition) -> Iterator[Compare | CheckIs]:
    """Every comparison in the condition, in reading order."""
    if isinstance(condition, Join):
        for item in condition.items:
            yield from leaves(item)
    elif isinstance(condition, Not):
        yield from leaves(condition.item)
    else:
        yield condition
