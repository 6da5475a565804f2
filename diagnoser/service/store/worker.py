"""The history file behind two threads: one writes, one reads. A disk that fails is told, never raised."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from diagnoser.errors import DiagnoserError
from diagnoser.service.store import transitions, upkeep
from diagnoser.service.store.file import WRITES_SHARE, limit, open_store, reason
from diagnoser.service.store.ids import Ids
from diagnoser.service.store.overflow import Overflow

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class HistoryError(DiagnoserError):
    """Something could not be kept: the disk is full, fails, or is read only."""


class Worker:
    """Runs work on the file. Opening blocks; everything else is for the event loop."""

    def __init__(self, path: Path | None, max_bytes: int) -> None:
        self._store = open_store(path, max_bytes)
        self._problem, self._standing = "", self._store.problem
        self.ids, self.overflow = Ids(self._store.writer), Overflow()
        self.newest_id = transitions.newest_id(self._store.writer)
        self._writer = ThreadPoolExecutor(1, "history-writer")
        shared = self._store.reader is self._store.writer
        self._reader = self._writer if shared else ThreadPoolExecutor(1, "history-reader")

    @property
    def problem(self) -> str:
        """Why not everything is being kept, as a sentence; "" = it is."""
        return self._problem or self._standing

    async def close(self) -> None:
        """Waits for what is being written, and closes the file."""
        for close in (self._writer.shutdown, self._reader.shutdown, self._store.close):
            await asyncio.to_thread(close)

    async def write(self, work: Work[object], instead: Callable[[], object] = lambda: None) -> None:
        """Committed when it returns. If that fails, `instead` is done and `problem` says why."""
        await self._in_writer(lambda: self._write(work, instead))

    async def transact(self, work: Work[T]) -> T:
        """The same with a result. Raises HistoryError if it is not committed."""

        def attempt() -> T:
            results: list[T] = []
            if self._write(lambda db: results.append(work(db)), _nothing):
                return results[0]
            raise HistoryError(self._problem)

        return await self._in_writer(attempt)

    async def read(self, work: Work[T], empty: T) -> T:
        """From the last committed state; `empty` if the file cannot be read."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, lambda: self._query(self._store.reader, work, empty))

    async def read_merged(self, work: Work[T], merge: Callable[[T], T], empty: T) -> T:
        """In the writer's thread, where what overflowed can be added."""
        return await self._in_writer(lambda: merge(self._query(self._store.writer, work, empty)))

    async def tidy(self, now: float, retention: float) -> None:
        """Keeps retention and size, and gives freed space back."""

        def tidied(db: sqlite3.Connection) -> None:
            self.overflow.settle(db)
            upkeep.tidy(db, now, retention, self._store.max_bytes)

        def work() -> None:
            # Without new messages: a full file must be able to make room for them.
            db, bound = self._store.writer, self._store.max_bytes
            self._query(db, lambda db: limit(db, bound, 1.0), None)
            if self._write(tidied, _nothing, flush=False):
                self._query(db, lambda db: db.execute("PRAGMA incremental_vacuum").fetchall(), [])
            self._query(db, lambda db: limit(db, bound, WRITES_SHARE), None)

        await self._in_writer(work)

    async def _in_writer(self, work: Callable[[], T]) -> T:
        # Shielded: a caller that is cancelled must not leave a transaction that nobody waits for.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writer, work))

    def _query(self, db: sqlite3.Connection, work: Work[T], empty: T) -> T:
        try:
            return work(db)
        except sqlite3.Error as error:
            self._problem = f"the history cannot be read ({reason(error)})."
            return empty

    def _write(self, work: Work[object], instead: Callable[[], object], flush: bool = True) -> bool:
        """One transaction, with what is left from those that failed."""
        db = self._store.writer
        try:
            db.execute("BEGIN IMMEDIATE")
            if flush:
                self.overflow.flush(db, self.ids)
            work(db)
            db.execute("COMMIT")
        except BaseException as error:
            self.ids = Ids(db)
            _roll_back(db)
            if not isinstance(error, sqlite3.Error):
                raise
            self._problem = f"the history is not being written ({reason(error)}); verdicts go on."
            instead()
            return False
        if flush:
            self.overflow.clear()
            self._problem = ""
        return True


def _nothing() -> None:
    """What is done instead of a write that can be missed."""


def _roll_back(db: sqlite3.Connection) -> None:
    try:
        if db.in_transaction:
            db.execute("ROLLBACK")
    except sqlite3.Error:
        db.close()  # what comes next fails, and is told
