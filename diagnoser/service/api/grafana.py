"""Flat rows for Grafana's Infinity data source (type JSON, parser backend). Times are epoch milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request

from diagnoser.language import Language, told
from diagnoser.service.api import models, views
from diagnoser.service.api.engines import Text
from diagnoser.service.api.grafanaquery import Fleet, Ranged, fleet_row, milliseconds, values
from diagnoser.service.api.languages import Heard
from diagnoser.service.api.problems import Problem
from diagnoser.service.api.timeline import check_kept
from diagnoser.service.board import Entry, Key
from diagnoser.service.history import KEY_SIGNALS

router = APIRouter(prefix="/api/v1/grafana", tags=["grafana"])
Row = dict[str, Any]
MAX_ENGINES = 500
"""Engines of one answer with a row a step."""
POOL = ("l1_capacity_tokens", "l1_used_ratio_last", "l1_evictable_ratio", "l1_available_ratio")


def _rows(*examples: Row) -> dict[int | str, dict[str, Any]]:
    schema = {"type": "array", "items": {"type": "object"}}
    return {200: {"description": "Rows.", "content": {"application/json": {"schema": schema, "example": examples}}}}


def _ends(value: float | list[float] | None) -> tuple[float | None, float | None]:
    """A quantity as the two ends of a range."""
    return (value[0], value[1]) if isinstance(value, list) else (value, value)


FLEET = _rows({"time": 1795976065000, "engine": models.ENGINE, "bottleneck": "l1", "severity": "critical"})


@router.get("/fleet", summary="Fleet table, worst first", responses=FLEET)
async def table(request: Request, wanted: Annotated[Fleet, Query()], language: Heard) -> list[Row]:
    """One row an engine rank, as it is now."""
    return [_line(entry, language) for entry in wanted.chosen(views.service_of(request).board.entries())]


def _line(entry: Entry, language: Language) -> Row:
    shown = views.engine(entry, language)
    row = fleet_row(entry)
    for name in ("used", "evictable", "available"):
        row[f"{name}_low_tokens"], row[f"{name}_high_tokens"] = _ends(getattr(shown.l1, name))
    return {
        **row,
        "target": shown.target,
        "version": shown.version,
        "mode": shown.mode,
        "verdict": f"{shown.bottleneck}/{shown.mode}" if shown.mode else shown.bottleneck,
        "confidence": shown.confidence,
        "trend": shown.trend,
        "headline": shown.headline,
        "l2": shown.l2,
        "since": milliseconds(shown.since),
        "blocked": round(sum(share for gate, share in shown.shares.items() if gate != "none"), 4),
        "waiting": shown.waiting,
        "running": shown.running,
        "capacity_tokens": shown.l1.capacity,
        "ttft_p99_low_seconds": shown.ttft_p99[0] if shown.ttft_p99 else None,
        "ttft_p99_high_seconds": shown.ttft_p99[1] if shown.ttft_p99 else None,
        "remedy": shown.first_remedy,
    }


class Timeline(Ranged):
    """Long: a row an engine and step. Wide: a row a step, a column an engine."""

    format: Literal["long", "wide"] = "long"


TIMELINE = _rows({"time": 1795976065000, "engine": models.ENGINE, "state": "l1", "severity": "critical"})


@router.get("/timeline", summary="Verdict timeline", responses=TIMELINE)
async def timeline(request: Request, wanted: Annotated[Timeline, Query()], language: Heard) -> list[Row]:
    """For the state timeline panel; in the long form partition by `engine`."""
    service, (start, end, step) = views.service_of(request), wanted.spans
    keys, rows, wide = wanted.keys(service.board.entries()), [], dict[int, Row]()
    one = keys[0] if keys is not None and len(keys) == 1 else None
    for point in [] if keys == [] else await service.history.verdicts(one, start, end, step):
        if keys is not None and point.key not in keys:
            continue
        at, mode = milliseconds(point.at), f"/{point.mode}" if point.mode else ""
        wide.setdefault(at, {"time": at})[point.key.id] = point.bottleneck
        rows.append(
            {
                "time": at, "engine": point.key.id, "state": point.bottleneck, "verdict": point.bottleneck + mode,
                "severity": point.severity, "l2": point.l2, "headline": told(point.headline, language),
            }
        )  # fmt: skip
    return [wide[at] for at in sorted(wide)] if wanted.format == "wide" else rows


async def _series(request: Request, wanted: Ranged, names: list[str]) -> list[tuple[Key, dict[float, Row]]]:
    """For each engine: step -> signal -> value."""
    service, (start, end, step) = views.service_of(request), wanted.spans
    keys = wanted.keys(service.board.entries())
    keys = [entry.key for entry in service.board.entries()] if keys is None else keys
    if len(keys) > MAX_ENGINES:
        raise Problem(422, f"More than {MAX_ENGINES} engines: choose fewer with `engine` or `model`.")
    out = []
    for key in keys:
        found = await service.history.signals(key, names, start, end, step)
        steps: dict[float, Row] = {}
        for name, points in found.items():
            for at, value in points:
                steps.setdefault(at, {})[name] = views.number(value)
        out.append((key, steps))
    return out


POOL_ROWS = _rows(
    {
        "time": 1795976065000, "engine": models.ENGINE, "capacity": 8160.0, "used": 7900.0, "evictable": 200.0,
        "available": 60.0, "free": 260.0,
    }
)  # fmt: skip


@router.get("/pool", summary="The three states of L1 over time, in tokens", responses=POOL_ROWS)
async def pool(request: Request, wanted: Annotated[Ranged, Query()]) -> list[Row]:
    """`evictable` and `available` are null where the engine does not tell them apart; `free` is their sum."""
    found = await _series(request, wanted, list(POOL))
    return [_pool(key, at, told) for key, steps in found for at, told in sorted(steps.items())]


def _pool(key: Key, at: float, told: Row) -> Row:
    capacity, used, evictable, available = (told.get(name) for name in POOL)

    def tokens(ratio: float | None) -> float | None:
        return None if ratio is None or capacity is None else round(ratio * capacity, 1)

    free = None if used is None else 1.0 - used
    return {
        "time": milliseconds(at), "engine": key.id, "capacity": capacity, "used": tokens(used),
        "evictable": tokens(evictable), "available": tokens(available), "free": tokens(free),
    }  # fmt: skip


class Signals(Ranged):
    """Which of the signals that are kept."""

    signal: Annotated[list[Text], Query(description=f"Any of {', '.join(KEY_SIGNALS)}.")] = []


SIGNALS = _rows({"time": 1795976065000, "engine": models.ENGINE, "signal": "waiting_last_requests", "value": 41.0})


@router.get("/signals", summary="Signals over time", responses={**SIGNALS, 404: {"description": "Not kept."}})
async def signals(request: Request, wanted: Annotated[Signals, Query()]) -> list[Row]:
    """A row an engine, signal and step; without `signal` all that are kept."""
    names = sorted(values(wanted.signal)) or list(KEY_SIGNALS)
    check_kept(names)
    found = await _series(request, wanted, names)
    return [
        {"time": milliseconds(at), "engine": key.id, "signal": name, "value": value}
        for key, steps in found
        for at, told in sorted(steps.items())
        for name, value in told.items()
    ]


ANNOTATIONS = _rows(
    {"time": 1795976065000, "title": f"{models.ENGINE}: none -> l1/reservation", "text": "L1-BOUND (reservation)"}
)


@router.get("/annotations", summary="Transitions as annotations", responses=ANNOTATIONS)
async def transitions(request: Request, wanted: Annotated[Ranged, Query()], language: Heard) -> list[Row]:
    """`time`, `title`, `text`, `tags` (comma separated), `id`, as Grafana maps them."""
    service, (start, end, _) = views.service_of(request), wanted.spans
    keys = wanted.keys(service.board.entries())
    one = keys[0] if keys is not None and len(keys) == 1 else None
    found = [] if keys == [] else await service.history.transitions(start, end, one)
    return [
        {
            "time": milliseconds(each.at), "id": each.id, "engine": each.key.id, "text": told(each.headline, language),
            "title": f"{each.key.id}: {each.before or 'new'} -> {each.after}",
            "tags": ",".join(filter(None, (each.after.partition("/")[0], each.severity, each.model))),
        }
        for each in found
        if keys is None or each.key in keys
    ]  # fmt: skip


Variable = Literal["engines", "targets", "models", "families", "ranks", "bottlenecks", "severities", "signals"]


class Option(models.Model):
    """One value of a variable."""

    text: str
    value: str


@router.get("/variables/{name}", summary="Values of a variable")
async def variables(request: Request, name: Variable, wanted: Annotated[Fleet, Query()]) -> list[Option]:
    """Of the engines that match the other variables; bottlenecks, severities and signals are all there are."""
    entries = wanted.chosen(views.service_of(request).board.entries())
    return [Option(text=value, value=value) for value in _values(name, entries) if value]


def _values(name: Variable, entries: Iterable[Entry]) -> Iterable[str]:
    fixed = {"bottlenecks": models.BOTTLENECKS, "severities": models.SEVERITIES, "signals": KEY_SIGNALS}
    if name in fixed:
        return fixed[name]
    engines = [entry.diagnosis.engine for entry in entries]
    return sorted(
        {
            "engines": {entry.key.id for entry in entries},
            "targets": {one.target for one in engines},
            "models": {one.model or "" for one in engines},
            "families": {one.family for one in engines},
            "ranks": {one.rank for one in engines},
        }[name]
    )
