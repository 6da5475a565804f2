"""`Dialect` of signals/promql for one engine family.

Every text is a vector with the labels `place` + model_name + the family's rank label, one element an engine rank.
Gauges are joined by max over their copies (processes, tensor-parallel ranks), as the adapters do; counters are never
summed over ranks that repeat one number. What a name meant in other releases is kept apart by a guard: a metric that
proves the release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from diagnoser.engines.base import HISTOGRAMS
from diagnoser.promql import histograms, polls
from diagnoser.promql.aliases import Aliases
from diagnoser.promql.place import Span
from diagnoser.promql.text import duration
from diagnoser.signals.base import scalar

__all__ = ["FamilyDialect", "Span"]


@dataclass(frozen=True)
class FamilyDialect(Aliases):
    """Spells signals for one family: gauges, counters, histograms, subqueries."""

    def gauge(self, name: str) -> str | None:
        """A reading now."""
        return self.each(name, lambda series: f"last_over_time({series}{self.recent()})")

    def over(self, how: str, name: str) -> str | None:
        """Over the pages of the window."""
        at_end = self.outside()
        return at_end.each(name, lambda series: f"{how}_over_time({series}{at_end.over_window()})")

    def grew(self, name: str) -> str | None:
        """Over the window; a restart counts from zero again."""
        at_end = self.outside()
        return at_end.each(name, lambda series: f"increase({series}{at_end.over_window()})")

    def stepped(self, name: str) -> str | None:
        """Since the page before; nothing in the step of a restart."""
        name, suffix = _histogram_part(name)
        shift = f" offset {duration(self.span.step)}"
        now = self.each(name, lambda series: f"last_over_time({series}{self.recent()})", suffix)
        before = self.each(name, lambda series: f"last_over_time({series}{self.recent()}{shift})", suffix)
        return None if now is None or before is None else f"(({now} - {before}) >= 0)"

    def total(self, names: Sequence[str], ago: float = 0.0) -> str | None:
        """One selector for all that are told a rank; what only the server counts is added to each rank."""
        shift = f" offset {duration(ago)}" if ago else ""
        own, shared = self.metrics(names, "rank"), self.metrics(names, "server")
        rank = self.sum_of(own, self.labels, f"{self.recent()}{shift}") if own else None
        server = self.sum_of(shared, self.place, f"{self.recent()}{shift}", own_only=False) if shared else None
        if server is None:
            return rank
        spread = self.to_ranks(server)
        return spread if rank is None else f"({rank} + ({spread} or {self.constant(0)}))"

    def only(self, names: Sequence[str]) -> str | None:
        """The one plain gauge among them."""
        found = [name for name in names if self.family.readings.get(name)]
        return found[0] if len(found) == 1 else None

    def lately(self, function: str, name: str, seconds: float) -> str | None:
        """Over pages that are at least `seconds` apart."""
        here = self.outside()
        pages = -(-seconds // self.span.step) + 1
        window = f"[{duration(pages * self.span.step)}]{here.at}" if seconds else here.over_window()
        return here.each(name, lambda series: f"{function}({series}{window})")

    def recently(self, name: str, seconds: float) -> str | None:
        """Before the place of evaluation."""
        bare = replace(self, family=replace(self.family, served=replace(self.family.served, unborn={})))
        return bare.each(name, lambda series: f"increase({series}[{duration(seconds)}]{self.at})")

    def ranks(self) -> str:
        """Ranks of the target."""
        return histograms.ranks(self.outside())

    def observed(self, name: str, part: str, *, ever: bool = False, before: bool = False) -> str | None:
        """Growth of a histogram."""
        at_end = self.outside()
        return at_end.each(name, at_end._first_page if before else at_end._growth(ever), f"_{part}")

    def _first_page(self, series: str) -> str:
        """What a series was on the first page of the window."""
        first = duration(self.span.window - self.span.step)
        return f"last_over_time({series}[{duration(2 * self.span.step)}]{self.at} offset {first})"

    def _growth(self, ever: bool) -> Callable[[str], str]:
        how = "last_over_time" if ever else "increase"
        return lambda series: f"{how}({series}{self.over_window()})"

    def edge(self, name: str, q: float, side: str, *, ever: bool = False) -> str | None:
        """The bucket's edge, by a histogram of one observation that lies in it (quantiles interpolate inside it)."""
        here = self.outside()
        found = [
            text
            for alias in self.family.readings.get(name, ())
            if (text := histograms.edge_of(here, alias, q, side, here._growth(ever))) is not None
        ]
        return None if not found else found[0] if len(found) == 1 else "(" + " or ".join(found) + ")"

    def label(self, name: str) -> str | None:
        """A number in a label of the configuration series."""
        return histograms.label(self.outside(), name)

    def labelled(self, name: str, value: str) -> str | None:
        """1 where the configuration says so."""
        return histograms.labelled(self.outside(), name, value)

    def trait(self, name: str) -> float | None:
        """As a number."""
        value = self.family.traits.get(name)
        return value if isinstance(value, float | int) else None

    def fact(self, name: str) -> float | None:
        """What the user told."""
        return self.facts.get(name)

    def param(self, name: str) -> float:
        """A threshold."""
        return scalar(self.params, name)

    def signal(self, name: str) -> str | None:
        """By its recording rule, else spelled out."""
        record = self.recorded(name)
        if record is not None:
            return record
        return self.signals[name].text(self) if name in self.signals else None

    def subquery(self, how: str, text: str, seconds: float = 0.0, ago: float = 0.0) -> str:
        """Over the steps of the window, or of a part of it."""
        steps = f"[{duration(seconds or self.span.window)}:{duration(self.span.step)}]"
        shift = f" offset {duration(ago)}" if ago else ""
        return f"{how}_over_time(({text}){steps}{self.at}{shift})"

    @property
    def window_seconds(self) -> float:
        """Length of the window."""
        return self.span.window

    @property
    def step_seconds(self) -> float:
        """Time between two pages."""
        return self.span.step

    def pages(self, what: str) -> str | None:
        """Of the page as such."""
        return polls.pages(self, what)


def _histogram_part(name: str) -> tuple[str, str]:
    """iteration_tokens_sum -> the histogram and the suffix of its series."""
    for suffix in ("_sum", "_count"):
        if name.removesuffix(suffix) in HISTOGRAMS and name.endswith(suffix):
            return name.removesuffix(suffix), suffix
    return name, ""
