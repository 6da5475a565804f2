"""Alerts of an Alertmanager come in, are kept at once, and are diagnosed over their own time by way of the outbox."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from diagnoser.model import Diagnosis
from diagnoser.outputs.contract import as_data
from diagnoser.service.board import Board, Key
from diagnoser.service.history import History, HistoryError
from diagnoser.service.notify.alertmanager import ALERTNAME
from diagnoser.service.notify.base import ACCEPTED, Outcome
from diagnoser.service.notify.event import Asked, Event, Links, Message, event_of, fingerprint
from diagnoser.service.notify.settings import Rate, WebhookSettings
from diagnoser.service.records import OutboxItem, WebhookResult
from diagnoser.service.relabel import choose, host_of, relabelled
from diagnoser.service.store import outbox as table

log = logging.getLogger("diagnoser.webhook")
RECEIVER = "@webhook"
"""Name of the lane that diagnoses; no receiver of the configuration can have it."""
KEPT = ("at", "window_seconds", "engine", "verdict", "l1", "would_more_l2_help", "findings", "remedies", "not_remedies")
"""Of a diagnosis, what a result keeps."""


class _Foreign(BaseModel):
    """Alertmanager may add fields."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Alert(_Foreign):
    """One alert. An `endsAt` in the year 1 means that it still fires."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = Field(default_factory=dict)
    starts_at: Annotated[datetime, Field(alias="startsAt")]
    ends_at: Annotated[datetime | None, Field(alias="endsAt")] = None
    generator_url: Annotated[str, Field(alias="generatorURL")] = ""
    fingerprint: str = ""


class AlertmanagerPayload(_Foreign):
    """What Alertmanager's webhook_config sends, version 4."""

    version: Literal["4"]
    group_key: Annotated[str, Field(alias="groupKey")]
    status: Literal["firing", "resolved"]
    receiver: str = ""
    truncated_alerts: Annotated[int, Field(alias="truncatedAlerts", ge=0)] = 0
    external_url: Annotated[str, Field(alias="externalURL")] = ""
    alerts: list[Alert]


@dataclass(frozen=True, slots=True)
class InboundReceipt:
    """`accepted` alerts are kept and will be diagnosed; `repeated` ones were known already. `ids` are of both.

    `truncated` is how many alerts Alertmanager left out (its max_alerts).
    """

    accepted: int
    repeated: int
    ids: tuple[str, ...]
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class InboundResult:
    """What one alert led to. `data` holds the alert, its time, the verdicts by engine, and why there are none."""

    id: str
    group_key: str
    fingerprint: str
    status: str
    received_at: float
    data: Mapping[str, Any]

    def as_data(self) -> dict[str, Any]:
        """JSON-ready."""
        own = {"id": self.id, "group_key": self.group_key, "fingerprint": self.fingerprint, "status": self.status}
        return {**own, "received_at": self.received_at, **self.data}


class Engines(Protocol):
    """What is asked of the service."""

    board: Board

    async def diagnose_at(self, key: Key, start: float, end: float) -> Diagnosis | None:
        """The verdict over that time; None if no page of it is kept."""

    def labels_of(self, key: Key) -> Mapping[str, str]:
        """Labels of the engine's target."""


class Inbound:
    """`receive` answers at once; `deliver` is the outbox's way to do the work, at least once."""

    name = RECEIVER
    rate: Rate | None = None

    def __init__(
        self,
        history: History,
        engines: Engines,
        settings: WebhookSettings,
        links: Links,
        wake: Callable[[set[str]], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._history, self._engines, self._wake, self._clock = history, engines, wake, clock
        self._settings, self._links = settings, links

    def use(self, settings: WebhookSettings, links: Links) -> None:
        """After a reload."""
        self._settings, self._links = settings, links

    async def receive(self, payload: AlertmanagerPayload) -> InboundReceipt:
        """Kept on disk when it returns; HistoryError if that is not possible, and Alertmanager must try again.

        An alert of the same group, fingerprint, status and start is the same alert, however often it comes.
        """
        items = {item.id: item for item in (_item(payload, alert, self._clock()) for alert in payload.alerts)}
        new = await self._history.transact(lambda db: _add(db, tuple(items.values())))
        self._wake({RECEIVER})
        if payload.truncated_alerts:
            log.warning("Alertmanager left %d alerts out of a webhook (max_alerts)", payload.truncated_alerts)
        return InboundReceipt(new, len(items) - new, tuple(items), payload.truncated_alerts)

    async def results(self, limit: int = 100) -> list[InboundResult]:
        """The newest first."""
        found = await self._history.webhook_results(limit)
        return [
            InboundResult(r.id, r.group_key, r.fingerprint, r.status, r.received_at, json.loads(r.body)) for r in found
        ]

    # ---------------------------------------------------------------- the work

    async def deliver(self, item: OutboxItem) -> Outcome:
        """Diagnoses one alert; its result and the messages about it are kept together."""
        data = json.loads(item.payload)
        alert = Alert.model_validate(data["alert"])
        asked, events, body = await self._work(alert, data["received_at"])
        messages = self._messages(item.id, asked, events) if events else []
        result = WebhookResult(
            item.id, data["group_key"], alert.fingerprint, alert.status, data["received_at"], json.dumps(body)
        )
        try:
            await self._history.transact(lambda db: _finish(db, result, messages))
        except HistoryError as error:
            return Outcome(False, True, str(error))
        self._wake({message.receiver for message in messages})
        return ACCEPTED

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _work(self, alert: Alert, received_at: float) -> tuple[Asked, tuple[Event, ...], dict[str, Any]]:
        start, end = self._time(alert)
        keys, reason = self._engines_of(alert)
        shown = keys[: self._settings.max_engines]
        if len(keys) > len(shown):
            reason = f"it names {len(keys)} engine ranks; these are the {len(shown)} worst now"
        found = [(key, *await self._diagnose(key, start, end)) for key in shown]
        events = tuple(self._event(key, diagnosis, start) for key, diagnosis, _ in found if diagnosis is not None)
        if found and not events:
            reason = found[0][2]
        asked = Asked(
            alert.labels.get("alertname", ""),
            alert.status,
            alert.labels,
            alert.starts_at.timestamp(),
            _end(alert),
            start,
            end,
            reason,
        )
        body = {
            "alert": alert.model_dump(mode="json", by_alias=True),
            "window": {"start": start, "end": end},
            "diagnosed_at": self._clock(),
            "reason": reason,
            "engines": [_engine(*one) for one in found],
            "forwarded_to": list(self._settings.forward) if events else [],
        }
        return asked, events, body

    def _time(self, alert: Alert) -> tuple[float, float]:
        end = _end(alert)
        now = self._clock()
        start = alert.starts_at.timestamp() - self._settings.window
        return start, max(start + 1.0, now if end is None else min(end, now))

    def _engines_of(self, alert: Alert) -> tuple[list[Key], str]:
        """The worst first."""
        if alert.labels.get("alertname") == ALERTNAME:
            return [], "it is our own alert, which already says the verdict"
        labels = relabelled(alert.labels, self._settings.relabel, self._settings.defaults)
        if labels is None:
            return [], "the relabelling rules drop it"
        entries = {entry.key: entry.diagnosis.engine for entry in self._engines.board.entries()}
        known = {
            key: {
                **self._engines.labels_of(key),
                "target": key.target,
                "host": host_of(key.target),
                "rank": key.rank,
                "model": engine.model or "",
                "family": engine.family,
            }
            for key, engine in entries.items()
        }
        return choose(labels, known, self._settings.relabel)

    async def _diagnose(self, key: Key, start: float, end: float) -> tuple[Diagnosis | None, str]:
        found = await self._engines.diagnose_at(key, start, end)
        if found is not None:
            return found, ""
        entry = self._engines.board.get(key)
        if entry is not None and start <= entry.diagnosis.at <= end + entry.diagnosis.window_seconds:
            return entry.diagnosis, "no page of that time is kept: this is the newest verdict"
        return None, "no page of that time is kept, and the newest verdict is of another time"

    def _event(self, key: Key, diagnosis: Diagnosis, start: float) -> Event:
        return event_of(diagnosis, start, diagnosis.at, self._engines.labels_of(key), self._links)

    def _messages(self, item_id: str, asked: Asked, events: Sequence[Event]) -> list[OutboxItem]:
        now = self._clock()
        message = Message(f"alert {asked.name} {fingerprint(*sorted(asked.labels.items()))}", tuple(events), {}, asked)
        return [
            OutboxItem(fingerprint("answer", item_id, name), name, "answer", message.to_json(), now, now)
            for name in self._settings.forward
        ]


def _end(alert: Alert) -> float | None:
    """Unix seconds; None while it fires, whatever end Alertmanager expects."""
    if alert.status == "firing" or alert.ends_at is None or alert.ends_at < datetime(1970, 1, 2, tzinfo=UTC):
        return None
    return alert.ends_at.timestamp()


def _item(payload: AlertmanagerPayload, alert: Alert, now: float) -> OutboxItem:
    own = alert.fingerprint or fingerprint(*sorted(alert.labels.items()))
    name = fingerprint("webhook", payload.group_key, own, alert.status, alert.starts_at.isoformat())
    data = {
        "subject": f"{payload.group_key} {own}",
        "group_key": payload.group_key,
        "received_at": now,
        "alert": alert.model_dump(mode="json", by_alias=True),
    }
    return OutboxItem(name, RECEIVER, "webhook", json.dumps(data, ensure_ascii=False), now, now)


def _add(db: sqlite3.Connection, items: Sequence[OutboxItem]) -> int:
    """How many of them are new."""
    before = db.total_changes
    table.add(db, items)
    return db.total_changes - before


def _finish(db: sqlite3.Connection, result: WebhookResult, messages: Sequence[OutboxItem]) -> None:
    table.put_result(db, result)
    table.add(db, messages)


def _engine(key: Key, diagnosis: Diagnosis | None, reason: str) -> dict[str, Any]:
    whole = {} if diagnosis is None else as_data(diagnosis)
    return {
        "engine": key.id,
        "target": key.target,
        "rank": key.rank,
        "reason": reason,
        "diagnosis": {name: whole[name] for name in KEPT} if whole else None,
    }
