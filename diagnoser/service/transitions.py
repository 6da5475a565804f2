"""From verdicts to messages: `for`, routes, groups, silences. What receivers know is kept, so nothing is forgotten in a
crash: a message and the fact that it was sent on its way are one transaction.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from diagnoser.service.board import Entry, Key
from diagnoser.service.history import History, HistoryError
from diagnoser.service.notify.event import (
    Event,
    Links,
    Message,
    event_from,
    event_of,
    fingerprint,
    verdict_words,
)
from diagnoser.service.notify.routing import Plan, labels_of, plans, seen, times
from diagnoser.service.notify.settings import NotifySettings, Route
from diagnoser.service.notify.silences import Silence, Silences
from diagnoser.service.notify.watch import State, Watch, step
from diagnoser.service.outbox import Outbox
from diagnoser.service.records import OutboxItem
from diagnoser.service.store import outbox as outbox_table
from diagnoser.service.store import told as told_table

log = logging.getLogger("diagnoser.notify")
ABSENT_SECONDS = 60.0
"""An engine that nobody shows any more is gone after so long: after a start, the first evaluation takes a while."""
SILENCED = "silenced"
"""Kind of the items that a silence kept from being sent."""
Name = tuple[str, Key]


@dataclass(frozen=True, slots=True)
class Change:
    """What a receiver should know of an engine rank, and does not. `subject` orders and groups messages."""

    plan: Plan
    key: Key
    subject: str
    wait: float
    group: Mapping[str, str]
    events: tuple[Event, ...]
    told: Event | None


class Watchdog:
    """Call `saw` after every evaluation. Create with `await Watchdog.open(...)`."""

    def __init__(self, history: History, outbox: Outbox, silences: Silences, clock: Callable[[], float] = time.time):
        self._history, self._outbox, self._silences, self._clock = history, outbox, silences, clock
        self._plans: tuple[Plan, ...] = ()
        self._links = Links("")
        self._target_labels: Callable[[Key], Mapping[str, str]] = _no_labels
        self._watches: dict[Name, Watch] = {}
        self._told: dict[Name, Event] = {}
        self._absent: dict[Name, float] = {}
        self._waiting: dict[str, float] = {}
        self._silenced: dict[Name, str] = {}
        self._resent: dict[str, float] = {}

    async def load(self) -> None:
        """What receivers were told before a restart."""
        try:
            rows = await self._history.transact(lambda db: list(told_table.rows(db)))
        except HistoryError as error:
            log.error("what receivers were told before is not known: %s", error)
            return
        for receiver, key, body in rows:
            try:
                self._told[receiver, key] = event_from(json.loads(body))
            except (ValueError, TypeError) as error:  # of another version
                log.error("what %s was told of %s cannot be read: %r", receiver, key.id, error)

    def use(self, settings: NotifySettings, links: Links, target_labels: Callable[[Key], Mapping[str, str]]) -> None:
        """Receivers and routes, after a (re)load."""
        self._plans, self._links, self._target_labels = plans(settings), links, target_labels

    @property
    def firing(self) -> Mapping[Name, Event]:
        """What receivers believe to be firing now."""
        return self._told

    async def saw(self, entries: Sequence[Entry], now: float) -> None:
        """One evaluation. Writes to the outbox; never waits for a receiver."""
        shown = {entry.key for entry in entries}
        changes = [
            change
            for plan in self._plans
            for change in (
                *(self._look(plan, entry, now) for entry in entries),
                *(self._missed(plan, name, now) for name in self._lost(plan, shown)),
            )
            if change is not None
        ]
        await self._tell([change for change in changes if await self._passes(change, now)], now)
        self._forget(shown)
        await self._drop_strangers()
        for plan in self._plans:
            self._resend(plan, entries, now)

    # ---------------------------------------------------------------- what should be known

    def _look(self, plan: Plan, entry: Entry, now: float) -> Change | None:
        name, diagnosis = (plan.name, entry.key), entry.diagnosis
        told = self._told.get(name)
        if told is None and name not in self._watches and diagnosis.verdict.bottleneck == "none":
            return None
        self._absent.pop(name, None)
        labels = labels_of(diagnosis, self._target_labels(entry.key))
        route = plan.route(labels)
        if route is None:
            return None if told is None else self._end(plan, told, "gone", now)
        state = None if told is None else State(told.bottleneck, told.severity)
        watch = replace(self._watches.get(name, Watch()), told=state)
        watch = step(watch, seen(route, diagnosis, state), entry.since, now, times(route))
        self._watches[name] = watch
        if watch.want == state:
            return None
        return self._change(plan, route, entry, watch, labels, now)

    def _change(
        self, plan: Plan, route: Route, entry: Entry, watch: Watch, labels: Mapping[str, str], now: float
    ) -> Change:
        told = self._told.get((plan.name, entry.key))
        new = None
        if watch.want is not None:
            new = event_of(entry.diagnosis, watch.state_since, now, self._target_labels(entry.key), self._links)
            new = new if told is None else replace(new, was=verdict_words(told))
        over = () if told is None else (_over(told, "recovered" if new is None else "changed", entry, now),)
        group = {name: labels.get(name, "") for name in route.group_by}
        subject, wait = _place(plan, route, entry.key, group)
        return Change(plan, entry.key, subject, wait, group, (*over, *([new] if new else [])), new)

    def _lost(self, plan: Plan, shown: set[Key]) -> list[Name]:
        return [name for name in self._told if name[0] == plan.name and name[1] not in shown]

    def _missed(self, plan: Plan, name: Name, now: float) -> Change | None:
        """An engine that fires somewhere and is shown no more."""
        first = self._absent.setdefault(name, now)
        return self._end(plan, self._told[name], "gone", now) if now - first >= ABSENT_SECONDS else None

    def _end(self, plan: Plan, told: Event, reason: str, now: float) -> Change:
        key = Key(told.target, told.rank)
        subject, _ = _place(plan, None, key, {})
        return Change(plan, key, subject, 0.0, {}, (_over(told, reason, None, now),), None)

    # ---------------------------------------------------------------- silences

    async def _passes(self, change: Change, now: float) -> bool:
        """May it be told now? An Alertmanager is told every end: it would go on to show what is over."""
        name, last = (change.plan.name, change.key), change.events[-1]
        silence = self._silences.of(_event_labels(last), now)
        if silence is None:
            self._silenced.pop(name, None)
            return True
        if change.plan.stateful and last.kind == "resolved":
            return True
        await self._note_silenced(change, silence, now)
        return False

    async def _note_silenced(self, change: Change, silence: Silence, now: float) -> None:
        """Kept once an alert and silence."""
        name, message = (change.plan.name, change.key), Message(change.subject, change.events, change.group)
        item_id = fingerprint(SILENCED, change.plan.name, silence.id, *_names(change.events))
        if self._silenced.get(name) == item_id:
            return
        self._silenced[name] = item_id
        why = f"silenced by {silence.id} ({silence.source}): {silence.comment}".rstrip(": ")
        item = OutboxItem(item_id, change.plan.name, SILENCED, message.to_json(), now, now, 0, "done", why)
        await self._history.outbox_add([item])

    # ---------------------------------------------------------------- to the outbox

    async def _tell(self, changes: Sequence[Change], now: float) -> None:
        """Groups whose wait is over become messages; of the others, only the wait is kept."""
        groups: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            groups[change.subject].append(change)
        self._waiting = {subject: self._waiting.get(subject, now) for subject in groups}
        ready = [
            group
            for subject, group in groups.items()
            if now - self._waiting[subject] >= min(change.wait for change in group)
        ]
        items = [item for group in ready for item in _items(group, now)]
        changed = [change for group in ready for change in group]
        if changed:
            await self._keep(items, changed)

    async def _keep(self, items: Sequence[OutboxItem], changed: Sequence[Change]) -> None:
        rows = [(c.plan.name, c.key, None if c.told is None else json.dumps(asdict(c.told))) for c in changed]

        def work(db: sqlite3.Connection) -> None:
            outbox_table.add(db, items)
            told_table.put(db, rows)

        try:
            await self._history.transact(work)
        except HistoryError:
            await self._history.outbox_add(items)
        for change in changed:
            name = (change.plan.name, change.key)
            if change.told is None:
                self._told.pop(name, None)
            else:
                self._told[name] = change.told
        self._outbox.wake({item.receiver for item in items})

    # ---------------------------------------------------------------- Alertmanager

    def _resend(self, plan: Plan, entries: Sequence[Entry], now: float) -> None:
        """All that fires there, so that it stays firing. Not kept: the next one says the same."""
        settings = plan.receiver.alertmanager
        if settings is None or now - self._resent.get(plan.name, 0.0) < settings.resend_every:
            return
        self._resent[plan.name] = now
        shown = {entry.key: entry for entry in entries}
        firing = [
            self._as_now(event, shown.get(key), now) for (name, key), event in self._told.items() if name == plan.name
        ]
        if firing:
            payload = Message(plan.name, tuple(firing)).to_json()
            self._outbox.offer(
                OutboxItem(fingerprint("resend", plan.name, now), plan.name, "resend", payload, now, now)
            )

    def _as_now(self, told: Event, entry: Entry | None, now: float) -> Event:
        """With the newest numbers, but the labels that it began with."""
        verdict = None if entry is None else entry.diagnosis.verdict
        if (
            entry is None
            or verdict is None
            or (verdict.bottleneck, verdict.severity) != (told.bottleneck, told.severity)
        ):
            return replace(told, at=now)
        new = event_of(entry.diagnosis, told.starts_at, now, told.labels, self._links)
        return replace(new, alert=told.alert, model=told.model, family=told.family)

    async def _drop_strangers(self) -> None:
        """What receivers knew that no route names any more: nobody is left to be told the end."""
        names = {plan.name for plan in self._plans}
        gone = [name for name in self._told if name[0] not in names]
        if not gone:
            return
        for name in gone:
            del self._told[name]
        try:
            await self._history.transact(lambda db: told_table.put(db, [(*name, None) for name in gone]))
        except HistoryError as error:
            log.error("what removed receivers were told is still in the file: %s", error)

    def _forget(self, shown: set[Key]) -> None:
        for name in [name for name in self._watches if name[1] not in shown and name not in self._told]:
            del self._watches[name]
            self._silenced.pop(name, None)
        self._absent = {name: at for name, at in self._absent.items() if name in self._told}


def _no_labels(key: Key) -> Mapping[str, str]:
    return {}


def _place(plan: Plan, route: Route | None, key: Key, group: Mapping[str, str]) -> tuple[str, float]:
    """(subject, seconds to wait for others). An Alertmanager groups itself and gets everything in one order."""
    if plan.stateful:
        return plan.name, 0.0
    if route is None or not group:
        return f"{plan.name} {key.id}", 0.0
    return f"{plan.name} {json.dumps(group, sort_keys=True, ensure_ascii=False)}", route.group_wait


def _over(told: Event, reason: str, entry: Entry | None, now: float) -> Event:
    present = None
    if entry is not None:
        verdict = entry.diagnosis.verdict
        present = {"rule": verdict.rule, "headline": verdict.headline, "l2": verdict.l2.value}
    return replace(told, kind="resolved", at=now, ends_at=now, reason=reason, now=present)


def _event_labels(event: Event) -> dict[str, str]:
    own = {"target": event.target, "rank": event.rank, "model": event.model or "", "family": event.family}
    return {**event.labels, **own, "bottleneck": event.bottleneck, "mode": event.mode or "", "severity": event.severity}


def _names(events: Sequence[Event]) -> list[str]:
    return sorted(f"{event.alert} {event.kind}" for event in events)


def _items(group: Sequence[Change], now: float) -> list[OutboxItem]:
    """One message, or none if the receiver wants no ends and this holds only such."""
    first = group[0]
    ends = first.plan.stateful or first.plan.receiver.send_resolved
    events = tuple(event for change in group for event in change.events if ends or event.kind == "firing")
    if not events:
        return []
    message = Message(first.subject, events, first.group)
    name = fingerprint(first.plan.name, *_names(events))
    return [OutboxItem(name, first.plan.name, message.kind, message.to_json(), now, now)]
