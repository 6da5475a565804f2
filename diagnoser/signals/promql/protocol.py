"""What a tree asks of the dialect that spells it for one engine family, and what every node can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Dialect(Protocol):
    """Spells readings for one family. Every text is one vector, an element an engine rank, with the same labels."""

    def gauge(self, name: str) -> str | None:
        """A reading now: at the window's end, or inside a subquery at its step."""

    def over(self, how: str, name: str) -> str | None:
        """`how`_over_time of a gauge over the window."""

    def grew(self, name: str) -> str | None:
        """Increase of a counter over the window."""

    def stepped(self, name: str) -> str | None:
        """Increase of a counter since the page before; only inside a subquery."""

    def labelled(self, name: str, value: str) -> str | None:
        """1 for every rank whose configuration series has that label."""

    def total(self, names: Sequence[str], ago: float = 0.0) -> str | None:
        """Sum over several gauges or counters, those that a rank has, now or `ago` seconds before."""

    def only(self, names: Sequence[str]) -> str | None:
        """The one of these readings that the family has as a plain gauge, None if there are several."""

    def lately(self, function: str, name: str, seconds: float) -> str | None:
        """A range function over the last `seconds`, or over the whole window (0)."""

    def recently(self, name: str, seconds: float) -> str | None:
        """Increase of a counter over the last `seconds` before the place of evaluation."""

    def ranks(self) -> str:
        """How many ranks the target has."""

    def observed(self, name: str, part: str, *, ever: bool = False, before: bool = False) -> str | None:
        """Growth of a histogram's "sum" or "count" over the window; `ever`: since the start; `before`: from the start
        to the first page of the window.
        """

    def edge(self, name: str, q: float, side: str, *, ever: bool = False) -> str | None:
        """ "low" or "high" edge of the bucket of a quantile; "top": the last finite edge there is."""

    def label(self, name: str) -> str | None:
        """A number that the engine writes into a label of its configuration series."""

    def trait(self, name: str) -> float | None:
        """How the family behaves; None where it does not say."""

    def fact(self, name: str) -> float | None:
        """What the user told of the configuration."""

    def param(self, name: str) -> float:
        """A threshold."""

    def constant(self, value: float) -> str:
        """The same number for every rank."""

    def signal(self, name: str) -> str | None:
        """Another signal."""

    def pages(self, what: str) -> str | None:
        """Of the page as such: "count" in the window, "age" of the newest, "failed", "failed_at_end"."""

    def inside(self) -> Dialect:
        """The same, at the steps of a subquery."""

    def outside(self) -> Dialect:
        """The same, at the end of the whole window, also from inside a subquery."""

    def subquery(self, how: str, text: str, seconds: float = 0.0, ago: float = 0.0) -> str:
        """`how`_over_time of a text rendered inside, over the window or the `seconds` that end `ago` seconds before."""

    @property
    def window_seconds(self) -> float:
        """Length of the window."""

    @property
    def step_seconds(self) -> float:
        """Time between two pages."""


class Ask:
    """One node."""

    def text(self, dialect: Dialect) -> str | None:
        """PromQL, or None."""
        raise NotImplementedError

    def looks_back(self, dialect: Dialect) -> int:
        """How many steps before its own a value is about as well."""
        return 0

    def plain(self, dialect: Dialect) -> str | Ask:
        """The name of the reading if that is all it is for this family, else the node that is left."""
        return self
