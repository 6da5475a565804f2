"""Queries of dashboards with their variables filled as Grafana fills them, and whether they must have data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .lab import NAMED, Engine, Lab

METRIC = re.compile(r"\b(rank:[a-z0-9_]+:\$\{window\}|(?:vllm|sglang):[a-z0-9_]+|diagnoser_[a-z0-9_]+)\{([^}]*)\}")
FIXED_LABEL = re.compile(r'(\w+)="([^"$]+)"')
FIXED = {"window": NAMED, "__rate_interval": NAMED}
Values = Mapping[str, str]
Series = tuple[str, frozenset[tuple[str, str]]]
"""A name, and the labels that a query fixes whatever is chosen."""


@dataclass(frozen=True)
class Asked:
    """One target of one panel."""

    board: str
    panel: str
    ref: str
    expr: str
    instant: bool

    @property
    def wants(self) -> frozenset[Series]:
        """Series that it needs: those behind `unless` are what it must not find."""
        return series(self.expr.partition(" unless ")[0])

    @property
    def shuns(self) -> frozenset[Series]:
        """Series that keep it silent."""
        return series(self.expr.partition(" unless ")[2]) - self.wants

    def concerns(self, engine: Engine) -> bool:
        """Is it about engines of that family?"""
        other = {"vllm": "sglang", "sglang": "vllm"}[engine.family]
        return not any(name.startswith((f"{other}:", f"rank:{other}_")) for name, _ in self.wants)


def panels(board: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All that are no rows, also inside of rows."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def queries(board: Mapping[str, Any]) -> Iterator[Asked]:
    """Of all panels and annotations."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield Asked(board["uid"], panel["title"], target["refId"], target["expr"], bool(target.get("instant")))
    for note in board["annotations"]["list"]:
        yield Asked(board["uid"], f"annotation {note['name']}", "Anno", note["expr"], False)


def filled(expr: str, values: Values) -> str:
    """As Grafana interpolates. What is left over is a variable that the dashboard does not have."""
    for name, value in {**FIXED, **values}.items():
        expr = re.sub(rf"\$\{{{name}\}}|\${name}\b", lambda _, value=value: value, expr)
    assert "$" not in expr, expr
    return expr


def escaped(value: str) -> str:
    """A label's value inside =~"": for the regular expression, and for the string around it."""
    return re.escape(value).replace("\\-", "-").replace("\\", "\\\\")


def variable_of(board: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """As the dashboard has it."""
    (found,) = (one for one in board["templating"]["list"] if one["name"] == name)
    return dict(found)


def windows(lab: Lab, board: Mapping[str, Any]) -> list[str]:
    """What the variable `window` offers."""
    variable = variable_of(board, "window")
    asked = re.fullmatch(r"metrics\((.*)\)", variable["query"]["query"])
    assert asked is not None, variable["query"]
    names = [name for name in lab.get("label/__name__/values") if re.search(asked.group(1), name)]
    found = (re.search(variable["regex"].strip("/"), name) for name in names)
    return [one.group(1) for one in found if one is not None]


def options(lab: Lab, board: Mapping[str, Any], name: str, values: Values) -> list[str]:
    """What a variable offers when those before it have these values."""
    variable = variable_of(board, name)
    asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
    assert asked is not None, variable["query"]
    found = lab.get("series", **{"match[]": filled(asked.group(1), values)})
    return sorted({one[asked.group(2)] for one in found if asked.group(2) in one})


def must_answer(asked: Asked, engine: Engine, rank: str, recorded: Sequence[Mapping[str, str]]) -> bool:
    """Does this engine export what the query needs, and nothing that silences it?"""

    def has(one: Series) -> bool:
        name, labels = one[0].replace("${window}", NAMED), set(one[1])
        if not name.startswith("rank:"):
            return name in engine.metrics or name.startswith("diagnoser_")
        found = (each for each in recorded if each["__name__"] == name and each.get("rank", rank) == rank)
        return any(labels <= set(each.items()) for each in found)

    return all(map(has, asked.wants)) and not any(map(has, asked.shuns))


def series(expr: str) -> frozenset[Series]:
    """All in an expression."""
    return frozenset((name, frozenset(FIXED_LABEL.findall(labels))) for name, labels in METRIC.findall(expr))
