"""Entries of the board as the API shows them, and the cursor and ETag that go with them."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from fastapi import Request
from starlette.responses import Response

from diagnoser.language import MARK, Language, phrase, told
from diagnoser.model import Diagnosis, PoolState, Quantity, Range
from diagnoser.outputs.base import urgency
from diagnoser.service.api import models
from diagnoser.service.api.problems import Problem
from diagnoser.service.board import Entry, Key, Transition

if TYPE_CHECKING:
    from diagnoser.service.service import Service

LOAD = (
    "arrival_rate", "admission_rate", "service_rate", "service_rate_max", "rho", "waiting_last_requests",
    "predicted_wait_seconds", "token_seconds_per_request", "resident_tokens_per_request", "running_mean_requests",
    "l1_capacity_tokens", "step_stretch_ratio", "time_to_exhaustion_seconds",
)  # fmt: skip
"""Signals that a prediction rests on."""


def service_of(request: Request) -> Service:
    """The service that the app was made for."""
    service: Service = request.app.state.service
    return service


def number(value: float | None) -> float | None:
    """Finite or nothing: JSON has no infinity."""
    return None if value is None or not math.isfinite(value) else round(value, 6)


def amount(value: Quantity) -> float | list[float] | None:
    """A quantity as number, pair or nothing."""
    if not isinstance(value, Range):
        return number(value)
    return [round(value.low, 1), round(value.high, 1)] if math.isfinite(value.low + value.high) else None


def pool(state: PoolState) -> models.Pool:
    """The three states."""
    return models.Pool(
        capacity=number(state.capacity),
        used=amount(state.used),
        evictable=amount(state.evictable),
        available=amount(state.available),
    )


def signal(entry: Entry, name: str) -> float | None:
    """A signal's value, None where it is missing, and of a dead engine: what it showed before is no news."""
    found = None if _dead(entry) else entry.diagnosis.signals.get(name)
    return None if found is None else number(found.value)


def _dead(entry: Entry) -> bool:
    return entry.diagnosis.verdict.bottleneck == "unreachable"


def _ttft_p99(entry: Entry) -> list[float | None] | None:
    ttft = entry.diagnosis.ttft
    if _dead(entry) or ttft is None or ttft.p99 is None or not math.isfinite(ttft.p99[0]):
        return None
    return [ttft.p99[0], number(ttft.p99[1])]


def engine(entry: Entry, language: Language) -> models.Engine:
    """One line of the fleet."""
    diagnosis, verdict, who = entry.diagnosis, entry.diagnosis.verdict, entry.diagnosis.engine
    return models.Engine.model_construct(
        id=entry.key.id, target=who.target, rank=who.rank, family=who.family, version=who.version, model=who.model,
        bottleneck=verdict.bottleneck, mode=verdict.mode, severity=verdict.severity, confidence=verdict.confidence,
        headline=told(verdict.headline, language), trend=verdict.trend,
        l2=verdict.l2.value, shares=dict(verdict.shares),
        urgency=urgency(diagnosis), since=round(entry.since, 3), at=round(diagnosis.at, 3),
        window_seconds=diagnosis.window_seconds, l1=_pool_now(entry),
        waiting=signal(entry, "waiting_last_requests"), running=signal(entry, "running_mean_requests"),
        ttft_p99=_ttft_p99(entry), first_remedy=_first_remedy(diagnosis, language),
    )  # fmt: skip


def _first_remedy(diagnosis: Diagnosis, language: Language) -> str | None:
    if not diagnosis.remedies:
        return None
    first = diagnosis.remedies[0]
    return f"{told(first.action, language)}{phrase(': ', language, MARK)}{told(first.flag, language)}"


def transition(one: Transition, language: Language) -> models.TransitionItem:
    """A change of verdict."""
    return models.TransitionItem.model_validate(
        {
            "id": one.id, "engine": one.key.id, "target": one.key.target, "rank": one.key.rank,
            "at": round(one.at, 3), "before": one.before, "after": one.after, "severity_before": one.severity_before,
            "severity": one.severity, "headline": told(one.headline, language), "model": one.model,
            "family": one.family,
        }
    )  # fmt: skip


def _pool_now(entry: Entry) -> models.Pool:
    found = entry.diagnosis.l1
    return models.Pool(capacity=number(found.capacity)) if _dead(entry) else pool(found)


def entry_of(service: Service, name: str) -> Entry:
    """The entry of an engine's id, or a problem that says what there is."""
    found = service.board.get(Key.parse(name))
    if found is None:
        raise Problem(404, f"No engine {name!r} is watched; /api/v1/engines lists those that are.", "no-such-engine")
    return found


def boot(service: Service) -> str:
    """Tells this run from an earlier one, whose cursors mean nothing any more."""
    return f"{int(service.started_at * 1000) & 0xFFFFFFFF:08x}"


def cursor(service: Service) -> str:
    """Where the board stands."""
    return f"{boot(service)}.{service.board.cursor}"


def since(service: Service, text: str | None) -> int | None:
    """The cursor that a client gives, None if it is of another run, from the future, or none."""
    run, _, position = (text or "").partition(".")
    if run != boot(service) or not position.isascii() or not position.isdigit():
        return None
    return int(position) if int(position) <= service.board.cursor else None


def etag(service: Service, *parts: Any) -> str:
    """Changes with every evaluation; the URL with its query is what it is the tag of."""
    text = repr((cursor(service), *parts)).encode()
    return f'W/"{hashlib.sha256(text).hexdigest()[:20]}"'


def unchanged(request: Request, tag: str) -> bool:
    """Does the client have it already?"""
    given = request.headers.get("if-none-match", "")
    return given.strip() == "*" or tag in [part.strip() for part in given.split(",")]


def not_modified(tag: str) -> Response:
    """304."""
    return Response(status_code=304, headers=tagged(tag))


def tagged(tag: str) -> dict[str, str]:
    """Headers of an answer that may be asked for again: kept, but never used without asking."""
    return {"ETag": tag, "Cache-Control": "private, no-cache"}
