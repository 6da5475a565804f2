"""Alias tables of an engine -> readings, histograms, the reasons for what is missing, and rejected series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from diagnoser.engines.base import HISTOGRAMS, READINGS, Alias
from diagnoser.engines.page import Found, Reader, describe
from diagnoser.engines.versions import Span
from diagnoser.model import NOT_IN_VERSION, BadSeries, Reading
from diagnoser.units import IMPOSSIBLE_RATIO

Aliases = Mapping[str, Sequence[Alias]]
NOT_YET = "not born yet: no request since the start"
FATAL = frozenset({"l1_used_ratio", "running_requests", "waiting_requests"})
"""Readings the verdict rests on: when the engine reports nonsense here, nothing may be concluded."""
RATIOS = frozenset(name for name in READINGS if name.endswith("_ratio"))
ROUNDING = 1e-9
"""A ratio this little above one is float arithmetic, not a report."""


def find(reader: Reader, readings: Aliases, histograms: Aliases, never: Mapping[str, str], title: str) -> Found:
    """Everything the tables give for one rank. `never` says why an engine has no such reading at all."""
    found = Found()
    for name, aliases in readings.items():
        reading = _first(reader, name, aliases, found)
        if reading is not None:
            _accept(name, reading, found)
    for name, aliases in histograms.items():
        usable = (reader.histogram(alias) for alias in aliases if reader.usable(alias))
        histogram = next((one for one in usable if one is not None), None)
        if histogram is not None:
            found.histograms[name] = histogram
    tables = {**readings, **histograms}
    for name in (*READINGS, *HISTOGRAMS):
        if name not in found.readings and name not in found.histograms and name not in found.missing:
            found.missing[name] = never.get(name) or why_missing(tables.get(name, ()), reader.span, title)
    return found


def _first(reader: Reader, name: str, aliases: Sequence[Alias], found: Found) -> Reading | None:
    for alias in aliases:
        reading = reader.reading(alias) if reader.usable(alias) else None
        if reading is not None:
            _note_processes(reader, name, aliases, alias, found)
            return reading
    return None


def _note_processes(reader: Reader, name: str, aliases: Sequence[Alias], used: Alias, found: Found) -> None:
    """A gauge without a multiprocess mode: each process keeps what it last saw, possibly long ago."""
    for alias in {alias.metric: alias for alias in aliases if not alias.where}.values():
        series = [sample for sample in reader.series(alias) if "pid" in sample.labels]
        if len({sample.labels["pid"] for sample in series}) < 2:
            continue
        values = {sample.value for sample in series}
        instead = f"the highest is used for {name}" if alias == used else f"{used.metric} is used for {name}"
        reason = f"one series per process; {instead}"
        if len(values) > 1:
            reason = f"one series per process, which differ ({min(values):g} to {max(values):g}); {instead}"
        found.bad.append(BadSeries(describe(alias, reader.scopes[alias.scope]), reason))


def _accept(name: str, reading: Reading, found: Found) -> None:
    reason, fatal = _wrong(name, reading.value)
    if reason:
        found.bad.append(BadSeries(reading.series, reason, fatal))
    if reason and not (name in RATIOS and 1.0 < reading.value <= IMPOSSIBLE_RATIO):
        found.missing[name] = f"rejected: {reading.series} {reason}"
        return
    value = min(reading.value, 1.0) if name in RATIOS else reading.value
    found.readings[name] = Reading(value, reading.series)


def _wrong(name: str, value: float) -> tuple[str, bool]:
    """Why a value cannot be true ("" = it can) and whether the verdict falls with it."""
    if math.isnan(value) or math.isinf(value):
        return f"is {value}", name in FATAL
    if value < 0:
        return f"is negative ({value:g})", name in FATAL
    if name in RATIOS and value > 1.0 + ROUNDING:
        return f"is above one ({value:g})", name in FATAL and value > IMPOSSIBLE_RATIO
    return "", False


def mark_cold(found: Found, cold: bool, series: str, never: Mapping[str, str]) -> None:
    """Say whether anything has run since the start; what a cold engine lacks is "not yet", whatever the version."""
    found.readings["cold_engine"] = Reading(float(cold), f"{series} (not born yet)" if cold else series)
    found.missing.pop("cold_engine", None)
    if cold:
        found.missing.update({name: NOT_YET for name in found.missing if name not in never})


def why_missing(aliases: Sequence[Alias], span: Span, title: str) -> str:
    """Absence has three meanings: not in this version, gone, or not (yet) on this page. This says which."""
    if not aliases:
        return f"{title} exports nothing of the kind"
    shown = span.text or "of unknown version"
    possible = [alias for alias in aliases if not span.before(alias.since) and not span.after(alias.until)]
    newest = (possible or aliases)[0]
    if any(alias.holds == "proven" for alias in aliases):
        return f"{newest.metric}: {newest.note} (this page is {shown})"
    if not possible and span.before(newest.since):
        return f"{NOT_IN_VERSION}: {newest.metric} is first in {title} {newest.since}, this page is {shown}"
    if not possible:
        return f"gone in this version: {newest.metric} was last in {title} {newest.until}, this page is {shown}"
    when = newest.note or "no sample yet, or left out of this page"
    if newest.since:
        return f"not on this page: {newest.metric}, first in {title} {newest.since} ({when})"
    return f"not on this page: {newest.metric} ({when})"
