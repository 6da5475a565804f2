"""From verdicts to messages: `for`, routes, groups, silences. What receivers know is kept, so nothing is forgotten in a
crash: a message and the fact that it was sent on its way are one transaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from diagnoser.service.board import Entry, Key
from diagnoser.service.history import History
from diagnoser.service.notify.changes import Change, Made, Name, event_labels, message_of, over, place, silenced
from diagnoser.service.notify.event import Event
from diagnoser.service.notify.resend import Resender
from diagnoser.service.notify.routing import Plan, labels_of, plans, seen, times
from diagnoser.service.notify.settings import NotifySettings, Route
from diagnoser.service.notify.silences import Silences
from diagnoser.service.notify.told import Told
from diagnoser.service.notify.verdicts import Links, event_of, verdict_words
from diagnoser.service.notify.watch import State, Watch, step
from diagnoser.service.outbox import Outbox
from diagnoser.service.records import OutboxItem

log = logging.getLogger("diagnoser.notify")
ABSENT_SECONDS = 60.0
"""An engine that nobody shows any more is gone after so long: after a start, the first evaluation takes a while."""


class Watchdog:
    """Call `load` once, `use` at every (re)load of the configuration, and `saw` after every evaluation."""

    def __init__(self, history: History, outbox: Outbox, silences: Silences) -> None:
        self._history, self._outbox, self._silences = history, outbox, silences
        self._told = Told(history)
        self._plans: tuple[Plan, ...] = ()
        self._links = Links("")
        self._target_labels: Callable[[Key], Mapping[str, str]] = _no_labels
        self._watches: dict[Name, Watch] = {}
        self._routes: dict[Name, Route] = {}
        self._absent: dict[Name, float] = {}
        self._waiting: dict[tuple[str, str], float] = {}
        self._silenced: dict[Name, tuple[str, State | None]] = {}
        self._resenders: dict[str, Resender] = defaultdict(Resender)

    async def load(self) -> None:
        """What receivers were told before a restart."""
        await self._told.load()

    def use(self, settings: NotifySettings, links: Links, target_labels: Callable[[Key], Mapping[str, str]]) -> None:
        """Receivers and routes."""
        self._plans, self._links, self._target_labels = plans(settings), links, target_labels

    @property
    def firing(self) -> Mapping[Name, Event]:
        """What receivers believe to be firing now."""
        return self._told.firing

    async def saw(self, entries: Sequence[Entry], now: float) -> None:
        """One evaluation. Writes to the outbox; never waits for a receiver."""
        shown = {entry.key: entry for entry in entries}
        for plan in self._plans:
            try:
                await self._judge(plan, entries, shown, now)
            except Exception:  # the other receivers are told, and this one at the next evaluation
                log.exception("receiver %s was not told of what changed", plan.name)
            await asyncio.sleep(0)  # others have their turn in a large fleet
        await self._forget(shown)
        for plan in self._plans:
            again = self._resenders[plan.name].due(plan, self.firing, shown, self._links, now)
            if again is not None:
                self._outbox.offer(again)

    async def _judge(self, plan: Plan, entries: Sequence[Entry], shown: Mapping[Key, Entry], now: float) -> None:
        looked = [self._look(plan, entry, now) for entry in entries]
        looked += [self._missed(plan, name, now) for name in self._lost(plan, shown)]
        changes = [change for change in looked if change is not None]
        await self._tell(plan, [change for change in changes if await self._passes(change, now)], now)

    # ---------------------------------------------------------------- what should be known

    def _look(self, plan: Plan, entry: Entry, now: float) -> Change | None:
        name, diagnosis = (plan.name, entry.key), entry.diagnosis
        told = self.firing.get(name)
        if told is None and name not in self._watches and diagnosis.verdict.bottleneck == "none":
            return None
        self._absent.pop(name, None)
        labels = labels_of(diagnosis, self._target_labels(entry.key))
        route = plan.route(labels, diagnosis, self._routes.get(name))
        if route is None:
            return None if told is None else self._end(plan, told, now)
        self._routes[name] = route
        state = None if told is None else State(told.bottleneck, told.severity)
        watch = replace(self._watches.get(name, Watch()), told=state)
        watch = step(watch, seen(route, diagnosis, state), entry.since, now, times(route))
        self._watches[name] = watch
        return None if watch.want == state else self._change(plan, route, entry, watch, labels, now)

    def _change(
        self, plan: Plan, route: Route, entry: Entry, watch: Watch, labels: Mapping[str, str], now: float
    ) -> Change:
        told = self.firing.get((plan.name, entry.key))
        group = {name: labels.get(name, "") for name in route.group_by}
        subject, wait = place(plan, route, entry.key, group)

        def make() -> Made:
            if watch.want is None:
                return (() if told is None else (over(told, "recovered", entry, now),)), None
            new = event_of(entry.diagnosis, watch.state_since, now, self._target_labels(entry.key), self._links)
            if told is None:
                return (new,), new
            new = replace(new, was=verdict_words(told))
            return (over(told, "changed", entry, now), new), new

        about = labels if watch.want is not None or told is None else event_labels(told)
        return Change(plan, entry.key, subject, wait, group, about, watch.want, make)

    def _lost(self, plan: Plan, shown: Mapping[Key, Entry]) -> list[Name]:
        return [name for name in self.firing if name[0] == plan.name and name[1] not in shown]

    def _missed(self, plan: Plan, name: Name, now: float) -> Change | None:
        """An engine that fires somewhere and is shown no more."""
        first = self._absent.setdefault(name, now)
        return self._end(plan, self.firing[name], now) if now - first >= ABSENT_SECONDS else None

    def _end(self, plan: Plan, told: Event, now: float) -> Change:
        """Of an engine that is watched no more, or not for this receiver."""
        subject, _ = place(plan, None, told.key, {})

        def make() -> Made:
            return (over(told, "gone", None, now),), None

        return Change(plan, told.key, subject, 0.0, {}, event_labels(told), None, make)

    async def _passes(self, change: Change, now: float) -> bool:
        """Does no silence hold it? An Alertmanager is told every end: it would go on to show what is over.

        What is held is kept, once an alert and silence.
        """
        silence = self._silences.of(change.labels, now)
        if silence is None:
            self._silenced.pop(change.name, None)
            return True
        if change.plan.stateful and change.want is None:
            return True
        what = (silence.id, change.want)
        if self._silenced.get(change.name) != what:
            self._silenced[change.name] = what
            await self._history.outbox_add([silenced(change, silence, now)])
        return False

    # ---------------------------------------------------------------- to the outbox

    async def _tell(self, plan: Plan, changes: Sequence[Change], now: float) -> None:
        """Groups whose wait is over become messages; of the others, only the wait is kept."""
        groups: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            groups[change.subject].append(change)
        waiting = {(plan.name, subject): self._waiting.get((plan.name, subject), now) for subject in groups}
        self._waiting = {name: since for name, since in self._waiting.items() if name[0] != plan.name} | waiting
        ready = [
            group
            for subject, group in groups.items()
            if now - waiting[plan.name, subject] >= min(change.wait for change in group)
        ]
        if ready:
            await self._send(plan, ready, now)

    async def _send(self, plan: Plan, groups: Sequence[Sequence[Change]], now: float) -> None:
        items: list[OutboxItem] = []
        told: dict[Name, Event | None] = {}
        for group in groups:
            made = [(change.name, *change.make()) for change in group]
            events = [event for _, events, _ in made for event in events]
            told |= {name: firing for name, _, firing in made}
            items += message_of(group[0], events, now)
            if plan.stateful:
                self._resenders[plan.name].note(events)
        await self._told.tell(items, told)
        self._outbox.wake({plan.name})

    async def _forget(self, shown: Mapping[Key, Entry]) -> None:
        """Engines and receivers that are no more."""
        await self._told.keep_only({plan.name for plan in self._plans})
        for name in [name for name in self._watches if name[1] not in shown and name not in self.firing]:
            del self._watches[name]
            self._routes.pop(name, None)
            self._silenced.pop(name, None)
        self._absent = {name: at for name, at in self._absent.items() if name in self.firing}


def _no_labels(key: Key) -> Mapping[str, str]:
    return {}
