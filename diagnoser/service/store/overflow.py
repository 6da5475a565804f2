"""What could not be written: kept in memory, bounded, and written with the next write that succeeds."""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from diagnoser.service.board import Transition
from diagnoser.service.records import OutboxItem
from diagnoser.service.store import outbox, transitions
from diagnoser.service.store.ids import Ids

MAX_TRANSITIONS = 10_000
MAX_ITEMS = 10_000
_Update = tuple[str, int, float, str]


class Overflow:
    """Messages and transitions while the disk is full. Used by the writer thread alone."""

    def __init__(self) -> None:
        self.transitions: deque[Transition] = deque(maxlen=MAX_TRANSITIONS)
        self._items: dict[str, OutboxItem] = {}
        self._updates: dict[str, _Update] = {}

    def add(self, items: Sequence[OutboxItem]) -> None:
        """Keeps messages; the oldest go where there are too many."""
        for item in items:
            self._items.setdefault(item.id, item)
        while len(self._items) > MAX_ITEMS:
            del self._items[next(iter(self._items))]

    def update(self, item_id: str, state: str, attempts: int, next_at: float, error: str) -> None:
        """What became of a message, here or on the disk."""
        if item_id in self._items:
            item = self._items[item_id]
            self._items[item_id] = replace(item, state=state, attempts=attempts, next_at=next_at, error=error)
        else:
            self._updates[item_id] = (state, attempts, next_at, error)

    def due(self, stored: Sequence[OutboxItem], now: float, limit: int, receiver: str) -> list[OutboxItem]:
        """What the disk has due, and what is kept here."""
        still = [item for item in stored if item.id not in self._updates]
        here = [
            item
            for item in self._items.values()
            if item.state == "pending" and item.next_at <= now and receiver in ("", item.receiver)
        ]
        return sorted([*still, *here], key=lambda item: (item.next_at, item.created_at))[:limit]

    def counts(self, stored: Mapping[str, int]) -> Mapping[str, int]:
        """Items by state, with those kept here."""
        found = Counter(dict(stored))
        found.update(item.state for item in self._items.values())
        return dict(found)

    def flush(self, db: sqlite3.Connection, ids: Ids) -> None:
        """Writes everything; `clear` once that is committed."""
        outbox.add(db, tuple(self._items.values()))
        self.settle(db)
        transitions.add(db, ids, self.transitions)

    def settle(self, db: sqlite3.Connection) -> None:
        """Writes only what became of messages on the disk, which needs no room and may make some."""
        for item_id, (state, attempts, next_at, error) in self._updates.items():
            outbox.update(db, item_id, state, attempts, next_at, error)

    def clear(self) -> None:
        """Everything is on the disk."""
        self.transitions.clear()
        self._items.clear()
        self._updates.clear()
