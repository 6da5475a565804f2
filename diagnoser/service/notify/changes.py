"""What a receiver should know and does not, and the message that says it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from diagnoser.service.board import Entry, Key
from diagnoser.service.notify.event import Event, Message, fingerprint
from diagnoser.service.notify.routing import Plan
from diagnoser.service.notify.settings import Route
from diagnoser.service.notify.silences import Silence
from diagnoser.service.notify.watch import State
from diagnoser.service.records import OutboxItem

SILENCED = "silenced"
"""Kind of the items that a silence kept from being sent."""
Name = tuple[str, Key]
"""A receiver and an engine rank."""
Made = tuple[tuple[Event, ...], Event | None]


@dataclass(frozen=True, slots=True)
class Change:
    """About one engine rank. `subject` orders and groups messages, `labels` are what silences match.

    `make` gives the events, and the one that fires from now on; it is called when the message leaves, since a group
    waits.
    """

    plan: Plan
    key: Key
    subject: str
    wait: float
    group: Mapping[str, str]
    labels: Mapping[str, str]
    want: State | None
    make: Callable[[], Made]

    @property
    def name(self) -> Name:
        """Who is to know, of whom."""
        return self.plan.name, self.key


def place(plan: Plan, route: Route | None, key: Key, group: Mapping[str, str]) -> tuple[str, float]:
    """(subject, seconds to wait for others). An Alertmanager groups itself and gets everything in one order."""
    if plan.stateful:
        return plan.name, 0.0
    if route is None or not group:
        return f"{plan.name} {key.id}", 0.0
    return f"{plan.name} {json.dumps(group, sort_keys=True, ensure_ascii=False)}", route.group_wait


def over(told: Event, reason: str, entry: Entry | None, now: float) -> Event:
    """The end of what was told."""
    present = None
    if entry is not None:
        verdict = entry.diagnosis.verdict
        present = {"rule": verdict.rule, "headline": verdict.headline, "l2": verdict.l2.value}
    return replace(told, kind="resolved", at=now, ends_at=now, reason=reason, now=present)


def event_labels(event: Event) -> dict[str, str]:
    """What silences match of something that was told."""
    own = {"target": event.target, "rank": event.rank, "model": event.model or "", "family": event.family}
    return {**event.labels, **own, "bottleneck": event.bottleneck, "mode": event.mode or "", "severity": event.severity}


def message_of(first: Change, events: Sequence[Event], now: float) -> list[OutboxItem]:
    """One message of a group, or none if the receiver wants no ends and this holds only such."""
    ends = first.plan.stateful or first.plan.receiver.send_resolved
    found = tuple(event for event in events if ends or event.kind == "firing")
    if not found:
        return []
    message = Message(first.subject, found, first.group)
    name = fingerprint(first.plan.name, now, *_names(found))  # the same alert may be told anew, after a route came back
    return [OutboxItem(name, first.plan.name, message.kind, message.to_json(), now, now)]


def silenced(change: Change, silence: Silence, now: float) -> OutboxItem:
    """What is kept of a message that was not sent."""
    events, _ = change.make()
    name = fingerprint(SILENCED, change.plan.name, silence.id, *_names(events))
    why = f"silenced by {silence.id} ({silence.source}): {silence.comment}".rstrip(": ")
    payload = Message(change.subject, events, change.group).to_json()
    return OutboxItem(name, change.plan.name, SILENCED, payload, now, now, 0, "done", why)


def _names(events: Sequence[Event]) -> list[str]:
    return sorted(f"{event.alert} {event.kind}" for event in events)
