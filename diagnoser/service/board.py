"""The newest diagnosis of every engine rank, what changed and since when. Lives on the event loop: no locks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from diagnoser.model import Diagnosis
from diagnoser.outputs.base import badness


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Who: one engine rank."""

    target: str
    rank: str

    @property
    def id(self) -> str:
        """ "10.0.3.7:8000/0": in URLs (percent-encoded) and labels."""
        return f"{self.target}/{self.rank}"

    @classmethod
    def parse(cls, text: str) -> Key:
        """The key of an `id`. Without a slash it is rank 0 of that target."""
        target, slash, rank = text.rpartition("/")
        return cls(target, rank) if slash else cls(text, "0")


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of (bottleneck, mode, severity) of one engine rank.

    `id` grows by one, 0 until stored. `before` and `after` are "l1/reservation", "none", ...: bottleneck[/mode];
    `before` is None when the rank was not known.
    """

    id: int
    key: Key
    at: float
    before: str | None
    after: str
    severity_before: str | None
    severity: str
    headline: str
    model: str
    family: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One rank on the board. `since`: unix seconds when the present verdict began; `cursor`: the round that last
    changed anything that people see of it.
    """

    key: Key
    diagnosis: Diagnosis
    since: float
    cursor: int


def key_of(diagnosis: Diagnosis) -> Key:
    """Whose diagnosis it is."""
    return Key(diagnosis.engine.target, diagnosis.engine.rank)


def name_of(diagnosis: Diagnosis) -> str:
    """The verdict as one word: bottleneck[/mode]."""
    verdict = diagnosis.verdict
    return f"{verdict.bottleneck}/{verdict.mode}" if verdict.mode else verdict.bottleneck


class Board:
    """All entries. `cursor` grows with every round that changed anything, and with every drop."""

    def __init__(self) -> None:
        self.cursor = 0
        self._entries: dict[Key, Entry] = {}
        self._remembered: dict[Key, Transition] = {}
        self._sorted: tuple[Entry, ...] | None = ()
        self._changed = asyncio.Event()

    def remember(self, last: Iterable[Transition]) -> None:
        """The last known transition of every rank, from before a restart: the same verdict is then no change."""
        self._remembered = {transition.key: transition for transition in last}

    def put(self, diagnoses: Sequence[Diagnosis]) -> tuple[Transition, ...]:
        """One round of evaluation. Returns what changed; wakes listeners if anything did."""
        cursor, changes = self.cursor + 1, []
        anything = False
        for diagnosis in diagnoses:
            key = key_of(diagnosis)
            old = self._entries.get(key)
            change = self._transition(key, old, diagnosis)
            if change is not None:
                changes.append(change)
            same = old is not None and change is None and _looks(old.diagnosis) == _looks(diagnosis)
            anything = anything or not same
            self._entries[key] = Entry(
                key, diagnosis, self._since(key, old, change, diagnosis), old.cursor if old and same else cursor
            )
            self._remembered.pop(key, None)
        self._sorted = None
        if anything:
            self._wake(cursor)
        return tuple(changes)

    def _transition(self, key: Key, old: Entry | None, new: Diagnosis) -> Transition | None:
        before, severity_before = self._state(key, old)
        after, severity = name_of(new), new.verdict.severity
        if (before, severity_before) == (after, severity):
            return None
        model, family = new.engine.model or "", new.engine.family
        return Transition(0, key, new.at, before, after, severity_before, severity, new.verdict.headline, model, family)

    def _state(self, key: Key, old: Entry | None) -> tuple[str | None, str | None]:
        if old is not None:
            return name_of(old.diagnosis), old.diagnosis.verdict.severity
        known = self._remembered.get(key)
        return (None, None) if known is None else (known.after, known.severity)

    def _since(self, key: Key, old: Entry | None, change: Transition | None, new: Diagnosis) -> float:
        if change is not None:
            return change.at
        return old.since if old is not None else self._remembered[key].at

    def drop(self, keys: Iterable[Key]) -> None:
        """Forgets ranks whose target left the configuration, or that their engine no longer has."""
        gone = [key for key in keys if self._entries.pop(key, None) is not None]
        if gone:
            self._sorted = None
            self._wake(self.cursor + 1)

    def _wake(self, cursor: int) -> None:
        self.cursor = cursor
        self._changed.set()
        self._changed = asyncio.Event()

    def entries(self) -> tuple[Entry, ...]:
        """Worst first (outputs.base.badness), equals by name."""
        if self._sorted is None:
            by_name = sorted(self._entries.values(), key=lambda entry: entry.key)
            self._sorted = tuple(sorted(by_name, key=lambda entry: badness(entry.diagnosis), reverse=True))
        return self._sorted

    def get(self, key: Key) -> Entry | None:
        """The entry of that rank."""
        return self._entries.get(key)

    async def changed(self, cursor: int) -> int:
        """Waits until `self.cursor` is above `cursor`, and returns it."""
        while self.cursor <= cursor:
            await self._changed.wait()
        return self.cursor


def _looks(diagnosis: Diagnosis) -> tuple[object, ...]:
    """What a reader would see change: the verdict, the answers, the pools; not the time."""
    answers = tuple((check.id, check.answer) for check in diagnosis.checks)
    return diagnosis.verdict, answers, diagnosis.l1, diagnosis.engine
