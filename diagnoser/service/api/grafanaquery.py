"""What Grafana sends: a range in epoch milliseconds, and variables that may have several values."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from diagnoser.outputs.base import urgency
from diagnoser.service.api.languages import Wish
from diagnoser.service.api.timeline import MAX_POINTS, MAX_SECONDS
from diagnoser.service.board import Entry, Key

EVERYTHING = frozenset({"", "$__all", "All", "all", ".*", "*"})


def _moment(value: Any) -> Any:
    """Milliseconds as a number or text, or ISO 8601."""
    try:
        return float(value)
    except (TypeError, ValueError):
        found = datetime.fromisoformat(str(value).strip().replace("Z", "+00:00"))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000


def values(given: Sequence[str]) -> frozenset[str]:
    """The values of a variable: repeated parameters, `{a,b}` (Infinity's default), `a,b`, `a|b`; empty = all."""
    found: set[str] = set()
    for text in given:
        text = text.strip()
        inner = text[1:-1] if text[:1] + text[-1:] in ("{}", "()") else text
        parts = [part.strip() for part in inner.replace("|", ",").split(",")]
        if any(part in EVERYTHING for part in parts):
            return frozenset()
        found.update(parts)
    return frozenset(found)


Moment = Annotated[
    float,
    Field(ge=0, le=MAX_SECONDS * 1000, allow_inf_nan=False, examples=[1795976065000]),
    BeforeValidator(_moment),
]
Values = list[str]
"""Bounded by the longest request line that the server takes, 64 KiB."""


class Fleet(BaseModel):
    """Which engines. Each variable once, several times, or as Grafana joins them: `{a,b}`; none or `All` = all."""

    model_config = ConfigDict(populate_by_name=True)

    engine: Values = []
    model: Values = []
    family: Values = []
    rank: Values = []
    bottleneck: Values = []
    severity: Values = []
    language: Wish = None

    def chosen(self, entries: Sequence[Entry]) -> list[Entry]:
        """Those of the entries that match."""
        wanted = {name: values(getattr(self, name)) for name in ("engine", "model", "family", "rank", "bottleneck")}
        wanted["severity"] = values(self.severity)
        return [entry for entry in entries if all(not w or _told(entry)[name] in w for name, w in wanted.items())]

    def keys(self, entries: Sequence[Entry]) -> list[Key] | None:
        """Whose history; None = all. Engines that are named count also when they are gone from the board."""
        named = values(self.engine)
        if not any(values(getattr(self, name)) for name in ("model", "family", "rank", "bottleneck", "severity")):
            return [Key.parse(name) for name in sorted(named)] if named else None
        return [entry.key for entry in self.chosen(entries)]


def _told(entry: Entry) -> dict[str, str]:
    who, verdict = entry.diagnosis.engine, entry.diagnosis.verdict
    return {
        "engine": entry.key.id,
        "model": who.model or "",
        "family": who.family,
        "rank": who.rank,
        "bottleneck": verdict.bottleneck,
        "severity": verdict.severity,
    }


class Ranged(Fleet):
    """From when to when: `${__from}` and `${__to}`; default the last hour. `interval_ms`: `${__interval_ms}`."""

    from_: Annotated[Moment | None, Query(alias="from", description="Epoch milliseconds, or ISO 8601.")] = None
    to: Annotated[Moment | None, Query(description="Epoch milliseconds, or ISO 8601.")] = None
    interval_ms: Annotated[float | None, Query(ge=1, le=3.2e10, allow_inf_nan=False)] = None

    @model_validator(mode="after")
    def _forwards(self) -> Ranged:
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise ValueError("from lies after to")
        return self

    @property
    def spans(self) -> tuple[float, float, float]:
        """start, end, step in seconds: a step that would make too many points is made larger."""
        end = time.time() if self.to is None else self.to / 1000
        start = max(0.0, end - 3600.0) if self.from_ is None else self.from_ / 1000
        step = max(1.0, (end - start) / 300 if self.interval_ms is None else self.interval_ms / 1000)
        return start, end, max(step, (end - start) / MAX_POINTS)


def milliseconds(at: float) -> int:
    """Epoch milliseconds, as Grafana counts."""
    return round(at * 1000)


def fleet_row(entry: Entry) -> dict[str, Any]:
    """What every row of a table of engines begins with."""
    return {"time": milliseconds(entry.diagnosis.at), **_told(entry), "urgency": urgency(entry.diagnosis)}
