"""Where a query is evaluated and of whom it asks: labels, selectors, ranges, and one element for each engine rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from diagnoser.promql.names import PLACE, Family
from diagnoser.promql.text import duration, name_matcher, quoted
from diagnoser.signals.base import Params
from diagnoser.signals.promql import Ask


@dataclass(frozen=True, slots=True)
class Span:
    """The window and the time between two pages, seconds."""

    window: float
    step: float


@dataclass(frozen=True)
class Place:
    """One family at one server. `where` is the place of evaluation: the window's end, the steps of a subquery, or the
    window's end seen from inside one.
    """

    family: Family
    span: Span
    params: Params
    signals: Mapping[str, Ask]
    match: str = ""
    by: tuple[str, ...] = ()
    recorded: Callable[[str], str | None] = lambda name: None
    """The name of the recording rule that holds a signal, None where there is none."""
    where: Literal["end", "step", "fixed"] = "end"
    facts: Mapping[str, float] = field(default_factory=dict)
    now: float | None = None
    """The time of the query; None in rules, where every step of a subquery looks back from itself. Not `@ end()`: a
    replay asks for the whole past of a rule at once, and VictoriaMetrics 1.79 puts it a step late in a subquery.
    """

    @property
    def place(self) -> str:
        """The labels of a target."""
        return ", ".join((*PLACE, *self.by))

    @property
    def labels(self) -> str:
        """The labels of an engine rank."""
        return f"{self.place}, model_name, {self.family.served.rank_label}"

    def inside(self) -> Self:
        """At the steps of a subquery."""
        return self if self.where == "step" else replace(self, where="step")

    def outside(self) -> Self:
        """At the end of the whole window."""
        return replace(self, where="fixed") if self.where == "step" else self

    @property
    def at(self) -> str:
        """What fixes a selector to the end of the query."""
        return "" if self.where != "fixed" or self.now is None else f" @ {self.now:.3f}"

    def over_window(self) -> str:
        """The range of the window."""
        return f"[{duration(self.span.window)}]{self.at}"

    def recent(self) -> str:
        """The range that holds the newest page."""
        return f"[{duration(2 * self.span.step)}]" if self.where == "step" else self.over_window()

    def selector(self, metric: str, where: Mapping[str, str | tuple[str, ...]] | None = None) -> str:
        """{...} of one metric in both spellings."""
        found = [name_matcher((metric,))]
        for label, value in {**self.family.served.matchers, **(where or {})}.items():
            found.append(
                f"{label}={quoted(value)}" if isinstance(value, str) else f"{label}=~{quoted('|'.join(value))}"
            )
        return "{" + ",".join([*found, *([self.match] if self.match else [])]) + "}"

    def server_selector(self, metric: str, where: Mapping[str, str | tuple[str, ...]] | None = None) -> str:
        """The same without what only series of a rank carry."""
        return replace(self, family=replace(self.family, served=replace(self.family.served, matchers={}))).selector(
            metric, where
        )

    def constant(self, value: float) -> str:
        """One element a rank that was there in the window."""
        zero = self.outside().anchors()
        return f"{zero} * 0" if value == 0 else f"({zero} * 0 + {value:g})"

    def anchors(self) -> str:
        """One element a rank that was there in the window."""
        names = name_matcher(self.family.served.anchors)
        inner = ",".join([names, *([self.match] if self.match else [])])
        return f"count by ({self.labels}) (last_over_time({{{inner}}}{self.over_window()}))"

    def to_ranks(self, per_server: str) -> str:
        """Every rank of a server shows what the server counts as a whole."""
        return f"({self.constant(0)} + on ({self.place}) group_left () {per_server})"
