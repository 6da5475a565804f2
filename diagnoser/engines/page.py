"""Samples of one page by name, and the reading of alias tables. Knows no engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from diagnoser.engines.base import Alias
from diagnoser.engines.versions import Span
from diagnoser.model import BadSeries, Histogram, Reading, Sample

Labels = Mapping[str, str]


class Page:
    """The samples of one page under their colon names, whichever spelling the page has."""

    def __init__(self, samples: Iterable[Sample], colon: str, underscore: str) -> None:
        self._by_name: dict[str, list[Sample]] = {}
        for sample in samples:
            name = sample.name
            if name.startswith(underscore):
                name = colon + name[len(underscore) :]
            self._by_name.setdefault(name, []).append(sample)

    def named(self, metric: str) -> Sequence[Sample]:
        """Every sample of that exact name, in page order."""
        return self._by_name.get(metric, ())

    def has(self, metric: str) -> bool:
        """Is there any sample of the metric, also of a histogram of that base name?"""
        return metric in self._by_name or f"{metric}_count" in self._by_name

    def label_values(self, metrics: Iterable[str], label: str) -> list[str]:
        """The values a label takes on these metrics, numbers in their order, each once."""
        found = {sample.labels[label] for metric in metrics for sample in self.named(metric) if label in sample.labels}
        return sorted(found, key=lambda value: (not value.isdigit(), int(value) if value.isdigit() else 0, value))


@dataclass(frozen=True, slots=True)
class Scope:
    """Which series belong to a rank. `suffix` is added to their name in evidence, `factor` to their value."""

    mine: Callable[[Labels], bool]
    suffix: str = ""
    factor: float = 1.0


@dataclass(slots=True)
class Found:
    """What the alias tables gave for one rank."""

    readings: dict[str, Reading] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    bad: list[BadSeries] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reader:
    """One rank's view of a page. `units` gives the factors that Alias.unit names, None where the page lacks them."""

    page: Page
    scopes: Mapping[str, Scope]
    span: Span
    units: Mapping[str, float | None] = field(default_factory=dict)

    def usable(self, alias: Alias) -> bool:
        """Do the versions let this alias mean what the reading says?"""
        if alias.unit and self.units.get(alias.unit) is None:
            return False
        if alias.holds == "proven":
            return self.span.inside(alias.since, alias.until)
        refuted = self.span.before(alias.since) or self.span.after(alias.until)
        return alias.holds == "present" or not refuted

    def series(self, alias: Alias, suffix: str = "") -> list[Sample]:
        """The rank's samples of an alias (`suffix` picks a part of a histogram)."""
        mine, where = self.scopes[alias.scope].mine, alias.where
        found = [sample for sample in self.page.named(alias.metric + suffix) if mine(sample.labels)]
        return [sample for sample in found if _matches(sample.labels, where)] if where else found

    def reading(self, alias: Alias) -> Reading | None:
        """The joined value of an alias, None where the page has no such series. NaN only if every series is NaN."""
        series = self.series(alias)
        if not series:
            return None
        scope = self.scopes[alias.scope]
        value = _join([sample.value for sample in series], alias.take)
        factor = alias.scale * scope.factor * (self.units.get(alias.unit) or 1.0)
        return Reading(value * factor, describe(alias, scope))

    def histogram(self, alias: Alias) -> Histogram | None:
        """The histogram of an alias, added over its series, on the edges that all of them have."""
        counts = self.series(alias, "_count")
        if not counts:
            return None
        by_edge: dict[float, list[float]] = {}
        for sample in self.series(alias, "_bucket"):
            by_edge.setdefault(_edge(sample.labels.get("le", "")), []).append(sample.value)
        series_count = max((len(values) for values in by_edge.values()), default=0)
        edges = sorted(edge for edge, values in by_edge.items() if len(values) == series_count)
        if not edges or edges[-1] != math.inf:
            edges = [*edges, math.inf]
            by_edge[math.inf] = [sample.value for sample in counts]
        total = sum(sample.value for sample in self.series(alias, "_sum"))
        summed = tuple(sum(by_edge[edge]) for edge in edges)
        return Histogram(tuple(edges), summed, total, describe(alias, self.scopes[alias.scope]))


def describe(alias: Alias, scope: Scope) -> str:
    """Name and label condition of an alias as evidence shows it."""
    labels = {key: value for key, value in (alias.where or {}).items() if value}
    shown = ",".join(f'{key}="{value if isinstance(value, str) else "|".join(value)}"' for key, value in labels.items())
    return f"{alias.metric}{{{shown}}}{scope.suffix}" if shown else f"{alias.metric}{scope.suffix}"


def _matches(labels: Labels, where: Mapping[str, str | tuple[str, ...]] | None) -> bool:
    for key, wanted in (where or {}).items():
        value = labels.get(key, "")
        if value != wanted if isinstance(wanted, str) else value not in wanted:
            return False
    return True


def _join(values: Sequence[float], take: str) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    if not numbers:
        return math.nan
    if take == "sum":
        return sum(numbers)
    return numbers[-1] if take == "last" else max(numbers)


@lru_cache(4096)
def _edge(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
