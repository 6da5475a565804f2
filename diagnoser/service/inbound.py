"""Alerts of an Alertmanager come in, are kept at once, and are diagnosed over their own time by way of the outbox."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diagnoser.service.answer import Answering, Engines
from diagnoser.service.history import History, HistoryError
from diagnoser.service.inbound_settings import WebhookSettings
from diagnoser.service.notify.base import ACCEPTED, Notifier, Outcome
from diagnoser.service.notify.event import Asked, Event, Message, fingerprint
from diagnoser.service.notify.fields import Rate
from diagnoser.service.notify.payload import Alert, AlertmanagerPayload
from diagnoser.service.notify.verdicts import Links
from diagnoser.service.records import OutboxItem, WebhookResult
from diagnoser.service.store import outbox as table

__all__ = ["LANES", "AlertmanagerPayload", "Engines", "Inbound", "InboundReceipt", "InboundResult"]

log = logging.getLogger("diagnoser.webhook")
LANES = ("@webhook", "@webhook.1", "@webhook.2", "@webhook.3")
"""Names of the lanes that diagnose; no receiver of the configuration can have them. An alert stays in one, so that its
end is diagnosed after its beginning; a slow diagnosis delays a quarter of the others.
"""


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


class Inbound:
    """`receive` answers at once; `lanes` are the outbox's way to do the work, at least once."""

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
        self.use(settings, links)

    def use(self, settings: WebhookSettings, links: Links) -> None:
        """After a reload."""
        self._answering = Answering(self._engines, settings, links, self._clock)
        self._forward = settings.forward

    async def receive(self, payload: AlertmanagerPayload) -> InboundReceipt:
        """Kept on disk when it returns; HistoryError if that is not possible, and Alertmanager must try again.

        An alert of the same group, fingerprint, status and start is the same alert, however often it comes.
        """
        items = {item.id: item for item in (_item(payload, alert, self._clock()) for alert in payload.alerts)}
        new = await self._history.transact(lambda db: _add(db, tuple(items.values())))
        self._wake({item.receiver for item in items.values()})
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

    def lanes(self) -> Mapping[str, Notifier]:
        """What the outbox delivers alerts to, by name."""
        return {name: _Lane(name, self.deliver) for name in LANES}

    async def deliver(self, item: OutboxItem) -> Outcome:
        """Diagnoses one alert; its result and the messages about it are kept together."""
        try:
            data = json.loads(item.payload)
            alert = Alert.model_validate(data["alert"])
        except (ValueError, LookupError) as error:  # of another version
            return Outcome(False, False, f"what was kept of this alert cannot be read ({type(error).__name__})")
        asked, events, body = await self._answering.answer(alert)
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

    def _messages(self, item_id: str, asked: Asked, events: Sequence[Event]) -> list[OutboxItem]:
        now = self._clock()
        message = Message(f"alert {asked.name} {fingerprint(*sorted(asked.labels.items()))}", tuple(events), {}, asked)
        return [
            OutboxItem(fingerprint("answer", item_id, name), name, "answer", message.to_json(), now, now)
            for name in self._forward
        ]


@dataclass(frozen=True, slots=True)
class _Lane:
    """A receiver that is this service itself."""

    name: str
    deliver: Callable[[OutboxItem], Awaitable[Outcome]]
    rate: Rate | None = None

    async def close(self) -> None:
        """Nothing is kept open."""


def lane_of(subject: str) -> str:
    """The lane of an alert, all its life."""
    return LANES[int(fingerprint(subject), 16) % len(LANES)]


def _item(payload: AlertmanagerPayload, alert: Alert, now: float) -> OutboxItem:
    own = alert.fingerprint or fingerprint(*sorted(alert.labels.items()))
    name = fingerprint("webhook", payload.group_key, own, alert.status, alert.starts_at.isoformat())
    subject = f"{payload.group_key} {own}"
    data = {
        "subject": subject,
        "group_key": payload.group_key,
        "received_at": now,
        "alert": alert.model_dump(mode="json", by_alias=True),
    }
    return OutboxItem(name, lane_of(subject), "webhook", json.dumps(data), now, now)


def _add(db: sqlite3.Connection, items: Sequence[OutboxItem]) -> int:
    """How many of them are new."""
    before = db.total_changes
    table.add(db, items)
    return db.total_changes - before


def _finish(db: sqlite3.Connection, result: WebhookResult, messages: Sequence[OutboxItem]) -> None:
    table.put_result(db, result)
    table.add(db, messages)
