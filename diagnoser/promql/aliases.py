"""The aliases of a reading as PromQL: old names and new, copies of one series, what a name means in which release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from diagnoser.engines.base import Alias
from diagnoser.engines.versions import Feature, parse
from diagnoser.promql.place import Place
from diagnoser.promql.text import name_matcher, quoted

Shape = Callable[[str], str]
"""A selector -> what is made of it, such as its increase."""


@dataclass(frozen=True)
class Aliases(Place):
    """Readings of one family, joined to one element a rank."""

    def each(self, name: str, shape: Shape, suffix: str = "") -> str | None:
        """The aliases of a reading, best first, each shaped and joined to one element a rank."""
        found = [
            text
            for alias in self.family.readings.get(name, ())
            if (text := self._alias(alias, shape, suffix)) is not None
        ]
        born = self.family.served.unborn.get(name)
        if found and born is not None and (proof := self.proof(parse(born))) is not None:
            found.append(f"({self.constant(0)} and on ({self.place}) {proof})")
        return None if not found else found[0] if len(found) == 1 else "(" + " or ".join(found) + ")"

    def _alias(self, alias: Alias, shape: Shape, suffix: str) -> str | None:
        text = self.joined_series(alias, shape, suffix)
        if text is None:
            return None
        if alias.scope == "server":
            text = self.to_ranks(text)
        if alias.scale != 1.0:
            text = f"({text} * {alias.scale:g})"
        return self.guarded(alias, text)

    def joined_series(self, alias: Alias, shape: Shape, suffix: str, keep: str = "") -> str | None:
        """One element a rank, or a server for what only that counts; and a value of the label `keep`."""
        if alias.unit or alias.scope not in ("rank", "server"):
            return None
        metric = alias.metric + suffix
        if alias.scope == "rank":
            return self._joined(alias, shape(self.selector(metric, alias.where)), keep)
        take = "sum" if alias.take == "sum" else "max"
        return f"{take} by ({self.place}{keep}) ({shape(self.server_selector(metric, alias.where))})"

    def _joined(self, alias: Alias, series: str, keep: str) -> str:
        if alias.take != "sum" or not self.family.served.copies:
            return f"{'sum' if alias.take == 'sum' else 'max'} by ({self.labels}{keep}) ({series})"
        return f"sum by ({self.labels}{keep}) (max without ({', '.join(self.family.served.copies)}) ({series}))"

    def guarded(self, alias: Alias, text: str) -> str | None:
        """Only where the release is known to mean this."""
        if alias.holds == "present":
            return text
        if alias.until:
            newer = self.proof(_next(alias.until))
            text = f"({text} unless on ({self.place}) {newer})" if newer else text
        if alias.holds == "proven" and alias.since:
            proof = self.proof(parse(alias.since))
            return None if proof is None else f"({text} and on ({self.place}) {proof})"
        return text

    def proof(self, release: tuple[int, ...]) -> str | None:
        """A series that only releases from this one on have."""
        for feature in self.family.served.features:
            if parse(feature.low) >= release and not feature.gone:
                return _feature(feature, self)
        return None

    def metrics(self, names: Sequence[str], scope: str) -> list[str]:
        counted = self.family.served.histograms
        return [
            alias.metric + ("_count" if name in counted else "")
            for name in names
            for alias in self.family.readings.get(name, ())
            if alias.scope == scope and not alias.unit
        ]

    def sum_of(self, metrics: Sequence[str], labels: str, window: str, *, own_only: bool = True) -> str:
        """last_over_time keeps the name, so several metrics may share labels; copies of one are joined by max."""
        parts = [name_matcher(tuple(dict.fromkeys(metrics)))]
        if own_only:
            parts += [f"{label}={quoted(value)}" for label, value in self.family.served.matchers.items()]
        inner = ",".join([*parts, *([self.match] if self.match else [])])
        copies = self.family.served.copies
        series = f"last_over_time({{{inner}}}{window})"
        if copies and own_only:
            series = f"max by ({', '.join((labels, '__name__', *self.family.served.parts))}) ({series})"
        return f"sum by ({labels}) ({series})"


def _feature(feature: Feature, dialect: Place) -> str:
    where: Mapping[str, str | tuple[str, ...]] = {}
    text = dialect.server_selector(feature.metric, where)
    if feature.label:
        text = text.removesuffix("}") + f',{feature.label}!=""}}'
    return f"last_over_time({text}{dialect.outside().over_window()})"


def _next(release: str) -> tuple[int, ...]:
    found = parse(release)
    return (*found[:-1], found[-1] + 1)
