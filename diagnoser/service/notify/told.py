"""What receivers believe to be firing. It is written in one transaction with the message that tells them."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Mapping, Sequence

from diagnoser.service.history import History, HistoryError
from diagnoser.service.notify.changes import Name
from diagnoser.service.notify.event import Event, event_from
from diagnoser.service.records import OutboxItem
from diagnoser.service.store import outbox as outbox_table
from diagnoser.service.store import told as table

log = logging.getLogger("diagnoser.notify")


class Told:
    """By receiver and engine rank; what is not here is not firing."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.firing: dict[Name, Event] = {}

    async def load(self) -> None:
        """What they were told before a restart."""
        try:
            rows = await self._history.transact(lambda db: list(table.rows(db)))
        except HistoryError as error:
            log.error("what receivers were told before is not known: %s", error)
            return
        for receiver, key, body in rows:
            try:
                self.firing[receiver, key] = event_from(json.loads(body))
            except (ValueError, TypeError) as error:  # of another version
                log.error("what %s was told of %s cannot be read: %r", receiver, key.id, error)

    async def tell(self, items: Sequence[OutboxItem], told: Mapping[Name, Event | None]) -> None:
        """Messages go on their way. With a full disk they still do, and a restart then forgets that."""
        rows = [(*name, None if event is None else json.dumps(event.as_data())) for name, event in told.items()]

        def work(db: sqlite3.Connection) -> None:
            outbox_table.add(db, items)
            table.put(db, rows)

        try:
            await self._history.transact(work)
        except HistoryError:
            await self._history.outbox_add(items)
        for name, event in told.items():
            if event is None:
                self.firing.pop(name, None)
            else:
                self.firing[name] = event

    async def keep_only(self, receivers: set[str]) -> None:
        """Forgets what others knew: nobody is left to be told the end."""
        gone = [name for name in self.firing if name[0] not in receivers]
        if not gone:
            return
        for name in gone:
            del self.firing[name]
        try:
            await self._history.transact(lambda db: table.put(db, [(*name, None) for name in gone]))
        except HistoryError as error:
            log.error("what removed receivers were told is still in the file: %s", error)
