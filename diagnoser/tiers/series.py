"""The series of one page that a tier reader asks for, and small helpers around them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from diagnoser.model import Fact, Reading, Sample

MAX_NAMES = 4096


class Series:
    """Samples by colon name, restricted to one engine rank. Both spellings are found."""

    def __init__(
        self, samples: Iterable[Sample], prefixes: Iterable[str], rank_label: str = "", rank: str = ""
    ) -> None:
        self._by_name: dict[str, list[Sample]] = {}
        names = _names(tuple(prefixes))
        for spelling, found in _grouped(samples).items():
            name = names[spelling]
            if name is not None:
                mine = [sample for sample in found if sample.labels.get(rank_label, rank) == rank]
                if mine:
                    self._by_name.setdefault(name, []).extend(mine)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def has(self, prefix: str) -> bool:
        """Is there any series whose name starts so?"""
        return any(name.startswith(prefix) for name in self._by_name)

    def of(self, metric: str, **where: str | tuple[str, ...]) -> list[Sample]:
        """The metric's valid samples with these labels ("" also matches a label that is not there)."""
        return [
            sample
            for sample in self._by_name.get(metric, ())
            if not math.isnan(sample.value) and sample.value >= 0 and _has(sample.labels, where)
        ]

    def total(self, metric: str, **where: str | tuple[str, ...]) -> Reading | None:
        """The sum over the metric's series, None where it has none."""
        found = self.of(metric, **where)
        return Reading(sum(sample.value for sample in found), _shown(metric, where)) if found else None

    def highest(self, metric: str, **where: str | tuple[str, ...]) -> Reading | None:
        """The largest of the metric's series (the same number on every rank or process)."""
        found = self.of(metric, **where)
        return Reading(max(sample.value for sample in found), _shown(metric, where)) if found else None


def known(counters: Mapping[str, Reading | None]) -> dict[str, Reading]:
    """Only what is there."""
    return {name: reading for name, reading in counters.items() if reading is not None}


def added(*readings: Reading | None) -> Reading | None:
    """The sum of what is there, None where nothing is."""
    there = [reading for reading in readings if reading is not None]
    if not there:
        return None
    return Reading(sum(reading.value for reading in there), " + ".join(reading.series for reading in there))


def fact_number(facts: Mapping[str, Fact], name: str) -> float | None:
    """A fact as a number, None where it is unknown or none."""
    value = facts[name].value if name in facts else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


_Grouped = Mapping[str, Sequence[Sample]]
_last: tuple[object, _Grouped] = ((), {})
"""The page that was grouped last: every tier asks for the same one."""


def _grouped(samples: Iterable[Sample]) -> _Grouped:
    """The samples by name as on the page."""
    global _last
    page, grouped = _last
    if page is samples:
        return grouped
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.name, []).append(sample)
    if isinstance(samples, tuple):  # what cannot change
        _last = (samples, found)
    return found


class _Names(dict[str, str | None]):
    """Colon names of series names, None for those of no prefix. Every page has the same names, so each is read once."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        super().__init__()
        self._spellings = [(prefix, prefix[:-1] + "_") for prefix in prefixes]

    def __missing__(self, name: str) -> str | None:
        if len(self) >= MAX_NAMES:
            self.clear()
        found = self[name] = self._colon_name(name)
        return found

    def _colon_name(self, name: str) -> str | None:
        for colon, underscore in self._spellings:
            if name.startswith(colon):
                return name
            if name.startswith(underscore):
                return colon + name[len(underscore) :]
        return None


@cache
def _names(prefixes: tuple[str, ...]) -> _Names:
    return _Names(prefixes)


def _has(labels: Mapping[str, str], where: Mapping[str, str | tuple[str, ...]]) -> bool:
    wanted = ((labels.get(key, ""), value) for key, value in where.items())
    return all(found in (value if isinstance(value, tuple) else (value,)) for found, value in wanted)


def _shown(metric: str, where: Mapping[str, str | tuple[str, ...]]) -> str:
    pairs = [(key, value if isinstance(value, str) else "|".join(value)) for key, value in where.items()]
    labels = ",".join(f'{key}="{value}"' for key, value in pairs if value)
    return f"{metric}{{{labels}}}" if labels else metric
