"""Conditions of the rule files in PromQL, three-valued.

A condition is the set of ranks for which it is surely true, and the set for which it is surely false; a rank in neither
is unknown. `and`, `or` and `unless` on sets are Kleene's logic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diagnoser.rulebook.conditions import CheckIs, Compare, Condition, Join, Not

OPPOSITE = {"==": "!=", "!=": "==", ">": "<=", ">=": "<", "<": ">=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Sets:
    """`true` and `false` as PromQL, None for the empty set."""

    true: str | None
    false: str | None


@dataclass(frozen=True, slots=True)
class Words:
    """How the leaves are spelled: the vector of a signal, the ranks that gave an answer, and all ranks."""

    signal: Callable[[str], str | None]
    answered: Callable[[str, str], str]
    everyone: str


def sets(condition: Condition, words: Words) -> Sets:
    """A condition as two sets."""
    if isinstance(condition, Compare):
        return _compared(condition, words.signal(condition.signal))
    if isinstance(condition, CheckIs):
        gave = words.answered(condition.check, condition.answer)
        return Sets(gave, f"({words.everyone} unless {gave})")
    if isinstance(condition, Not):
        inner = sets(condition.item, words)
        return Sets(inner.false, inner.true)
    return _joined(condition, [sets(item, words) for item in condition.items], words)


def _compared(leaf: Compare, vector: str | None) -> Sets:
    if vector is None:
        return Sets(None, None)
    return Sets(f"({vector} {leaf.op} {leaf.value:g})", f"({vector} {OPPOSITE[leaf.op]} {leaf.value:g})")


def _joined(join: Join, items: list[Sets], words: Words) -> Sets:
    if join.how == "all":
        return Sets(_every([i.true for i in items], words.everyone), _some([i.false for i in items]))
    return Sets(_some([i.true for i in items]), _every([i.false for i in items], words.everyone))


def _every(texts: list[str | None], everyone: str) -> str | None:
    """In all of them; everybody where there are none."""
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return None
    return f"({' and '.join(known)})" if known else everyone


def _some(texts: list[str | None]) -> str | None:
    known = [text for text in texts if text is not None]
    return f"({' or '.join(known)})" if known else None
