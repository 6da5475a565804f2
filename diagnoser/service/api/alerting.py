"""Alertmanager's alerts in, notifications out, silences."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import ConfigDict, Field

from diagnoser.service.api import models, views
from diagnoser.service.api.problems import Problem
from diagnoser.service.history import HistoryError
from diagnoser.service.inbound import AlertmanagerPayload
from diagnoser.service.notify.silences import NewSilence

if TYPE_CHECKING:
    from diagnoser.service.alerting import Alerting

router = APIRouter(prefix="/api/v1", tags=["alerting"])
Id = Annotated[str, Path(max_length=300)]
Limit = Annotated[int, Query(ge=1, le=1000)]
NOT_STORED: dict[int | str, dict[str, Any]] = {503: {"description": "It could not be stored: send it again."}}


class Receipt(models.Model):
    """What became of the alerts: each is diagnosed after the answer; the results are at /webhook/results."""

    accepted: int
    repeated: Annotated[int, Field(description="Known already: same group, alert, status and start.")]
    truncated: Annotated[int, Field(description="Left out by Alertmanager (max_alerts).")]
    ids: list[str]


class Result(models.Model):
    """What one alert led to."""

    model_config = ConfigDict(extra="allow")

    id: str
    group_key: str
    fingerprint: str
    status: str
    received_at: float


class SilenceItem(models.Model):
    """A silence. `source` tells whether it can be ended here (api) or stands in the configuration."""

    id: str
    match: dict[str, str]
    starts_at: float
    ends_at: float | None
    comment: str
    author: str
    source: Literal["api", "configuration"]


class Notification(models.Model):
    """A message to a receiver that it has not accepted."""

    id: str
    receiver: str
    kind: str
    state: str
    created_at: float
    next_at: float
    attempts: int
    error: str


def _alerting(request: Request) -> Alerting:
    found: Alerting | None = views.service_of(request).alerting
    if found is None:
        raise Problem(503, "Alerting has not started yet.", "not-ready", {"Retry-After": "5"})
    return found


def _not_stored(error: HistoryError) -> Problem:
    return Problem(503, f"It could not be stored, send it again: {error}", "not-stored", {"Retry-After": "30"})


@router.post("/webhook/alertmanager", summary="Alertmanager's webhook (v4)", status_code=202, responses=NOT_STORED)
async def receive(request: Request, payload: AlertmanagerPayload) -> Receipt:
    """Kept before the answer, diagnosed after it. Repeats by group and fingerprint change nothing."""
    try:
        found = await _alerting(request).inbound.receive(payload)
    except HistoryError as error:
        raise _not_stored(error) from None
    return Receipt(accepted=found.accepted, repeated=found.repeated, truncated=found.truncated, ids=list(found.ids))


@router.get("/webhook/results", summary="What inbound alerts led to")
async def results(request: Request, limit: Limit = 100) -> list[Result]:
    """The newest first: the alert, its time, the verdict of each engine it is about."""
    return [Result.model_validate(one.as_data()) for one in await _alerting(request).inbound.results(limit)]


@router.get("/silences", summary="Maintenance silences")
async def silences(request: Request) -> list[SilenceItem]:
    """All that are not over."""
    return [SilenceItem.model_validate(one.as_data()) for one in _alerting(request).silences.list()]


@router.post("/silences", summary="Silence", status_code=201, responses=NOT_STORED)
async def silence(request: Request, wish: NewSilence) -> SilenceItem:
    """No message about what matches goes out until it ends; verdicts go on."""
    if wish.ends_at is not None and wish.ends_at <= time.time():
        raise Problem(422, "The silence would be over already: `until` lies in the past.")
    try:
        return SilenceItem.model_validate((await _alerting(request).silences.add(wish)).as_data())
    except HistoryError as error:
        raise _not_stored(error) from None


@router.delete("/silences/{silence}", summary="End a silence", status_code=204, responses=NOT_STORED)
async def end_silence(request: Request, silence: Id) -> None:
    """Only one that was added here: those of the configuration end there."""
    try:
        ended = await _alerting(request).silences.end(silence)
    except HistoryError as error:
        raise _not_stored(error) from None
    if not ended:
        raise Problem(404, f"No silence {silence!r} that could be ended here.", "no-such-silence")


@router.get("/notifications", summary="Messages on their way, given up, or silenced")
async def notifications(
    request: Request, state: Literal["pending", "dead", "silenced"] = "pending", limit: Limit = 100
) -> list[Notification]:
    """On their way, given up, or kept back by a silence; the newest first, without their text."""
    outbox = _alerting(request).outbox
    asked = {"pending": outbox.pending_items, "dead": outbox.dead_items, "silenced": outbox.silenced_items}[state]
    return [Notification.model_validate(asdict(item)) for item in await asked(limit)]


@router.post("/notifications/{notification:path}/retry", summary="Try one again", status_code=204, responses=NOT_STORED)
async def retry(request: Request, notification: Id) -> None:
    """One that was given up."""
    try:
        found = await _alerting(request).outbox.requeue(notification)
    except HistoryError as error:
        raise _not_stored(error) from None
    if not found:
        raise Problem(404, f"No message {notification!r} was given up.", "no-such-notification")
