"""An Alertmanager forgets what is not sent again, and may get an old word late: so beginnings and ends are repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from diagnoser.service.board import Entry, Key
from diagnoser.service.notify.changes import Name
from diagnoser.service.notify.event import Event, Message, fingerprint
from diagnoser.service.notify.routing import Plan
from diagnoser.service.notify.verdicts import Links, event_of
from diagnoser.service.records import OutboxItem

RESOLVED_SECONDS = 900.0
"""An end is repeated so long, as Prometheus does it."""


class Resender:
    """Of one Alertmanager.

    Which ends are repeated is not kept over a restart: the first word of each end went through the outbox, and without
    any word an alert there is over after four times `resend_every`.
    """

    def __init__(self) -> None:
        self._sent_at = 0.0
        self._ended: dict[tuple[Key, str, str], Event] = {}

    def note(self, events: Sequence[Event]) -> None:
        """What it was told now. What fires again has not ended: to an Alertmanager it is the same alert."""
        for event in events:
            same = (event.key, event.bottleneck, event.severity)
            self._ended.pop(same, None)
            if event.kind == "resolved":
                self._ended[same] = event

    def due(
        self, plan: Plan, firing: Mapping[Name, Event], entries: Mapping[Key, Entry], links: Links, now: float
    ) -> OutboxItem | None:
        """All that fires there and what ended lately, if it is time. Not kept: the next one says the same."""
        settings = plan.receiver.alertmanager
        if settings is None or now - self._sent_at < settings.resend_every:
            return None
        self._sent_at = now
        self._ended = {name: one for name, one in self._ended.items() if now - one.at < RESOLVED_SECONDS}
        events = [
            _as_now(told, entries.get(name[1]), links, now) for name, told in firing.items() if name[0] == plan.name
        ]
        events += self._ended.values()
        if not events:
            return None
        payload = Message(plan.name, tuple(events)).to_json()
        return OutboxItem(fingerprint("resend", plan.name, now), plan.name, "resend", payload, now, now)


def _as_now(told: Event, entry: Entry | None, links: Links, now: float) -> Event:
    """With the newest numbers, but the labels that it began with."""
    verdict = None if entry is None else entry.diagnosis.verdict
    if entry is None or verdict is None or (verdict.bottleneck, verdict.severity) != (told.bottleneck, told.severity):
        return replace(told, at=now)
    new = event_of(entry.diagnosis, told.starts_at, now, told.labels, links)
    return replace(new, alert=told.alert, model=told.model, family=told.family)
