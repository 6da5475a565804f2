"""What the service remembers: one SQLite file (WAL). Work happens in threads; nothing here raises for a bad disk.

What a call has returned for is on the disk (synchronous = FULL). While the disk is full or fails, `healthy` is False,
messages and transitions are kept in memory, and are written as soon as that works again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from diagnoser.model import Diagnosis
from diagnoser.service.board import Key, Transition, key_of, name_of
from diagnoser.service.records import OutboxItem, VerdictPoint, WebhookResult
from diagnoser.service.store import evaluations, outbox, transitions, upkeep
from diagnoser.service.store.file import open_store, reason
from diagnoser.service.store.ids import Ids
from diagnoser.service.store.overflow import Overflow

__all__ = ["KEY_SIGNALS", "History", "OutboxItem", "VerdictPoint", "WebhookResult"]

T = TypeVar("T")
KEY_SIGNALS = (
    "l1_used_ratio_last",
    "l1_evictable_ratio",
    "l1_available_ratio",
    "l1_capacity_tokens",
    "l2_resident_ratio",
    "waiting_last_requests",
    "waiting_max_requests",
    "running_mean_requests",
    "arrival_rate",
    "admission_rate",
    "preemptions_rate",
    "ttft_mean_seconds",
    "queue_share_ratio",
    "prefix_hit_ratio",
    "rho",
)
"""Signals whose course is kept; `History.signals` knows no others."""
SAMPLE_SECONDS = 15.0
"""An evaluation is kept so often, and whenever the verdict changed."""
TIDY_SECONDS = 60.0


class History:
    """Create with `await History.open(...)`."""

    def __init__(self, path: Path | None, retention_seconds: float, max_bytes: int) -> None:
        self.path, self._retention = path, retention_seconds
        self._store = open_store(path, max_bytes)
        self._problem, self._standing = "", self._store.problem
        self._ids, self._overflow = Ids(self._store.writer), Overflow()
        self._next_id = transitions.newest_id(self._store.writer) + 1
        self._kept: dict[Key, tuple[float, str]] = {}
        self._tidied = 0.0
        self._writer = ThreadPoolExecutor(1, "history-writer")
        shared = self._store.reader is self._store.writer
        self._reader = self._writer if shared else ThreadPoolExecutor(1, "history-reader")

    @classmethod
    async def open(cls, path: Path | None, retention_seconds: float, max_bytes: int) -> History:
        """The history at `path`, made if it is not there; None keeps it in memory."""
        return await asyncio.to_thread(cls, path, retention_seconds, max_bytes)

    @property
    def healthy(self) -> bool:
        """Is everything being written?"""
        return not self.problem

    @property
    def problem(self) -> str:
        """Why not, as a sentence."""
        return self._problem or self._standing

    async def close(self) -> None:
        """Waits for what is being written, and closes the file."""
        await asyncio.to_thread(self._writer.shutdown)
        await asyncio.to_thread(self._reader.shutdown)
        await asyncio.to_thread(self._store.close)

    # ---------------------------------------------------------------- evaluations and transitions

    async def record(self, diagnoses: Sequence[Diagnosis], found: Sequence[Transition]) -> tuple[Transition, ...]:
        """Keeps one round of evaluation. Returns the transitions with their ids."""
        numbered = tuple(replace(one, id=self._next_id + place) for place, one in enumerate(found))
        self._next_id += len(numbered)
        rows = [row for row in map(self._row, diagnoses) if row is not None]
        now = max((one.at for one in diagnoses), default=0.0)

        def work(db: sqlite3.Connection) -> None:
            evaluations.add(db, self._ids, KEY_SIGNALS, rows)
            transitions.add(db, self._ids, numbered)

        await self._in_writer(lambda: self._write(work, lambda: self._overflow.transitions.extend(numbered)))
        if now >= self._tidied + TIDY_SECONDS:
            self._tidied = now
            await self._in_writer(lambda: self._tidy(now))
        return numbered

    def _row(self, diagnosis: Diagnosis) -> tuple[Diagnosis, bool] | None:
        """The diagnosis if it is to be kept, and whether it is the first of its minute."""
        key, name = key_of(diagnosis), f"{name_of(diagnosis)} {diagnosis.verdict.severity}"
        at, known = self._kept.get(key, (0.0, ""))
        if name == known and diagnosis.at < at + SAMPLE_SECONDS - 0.5:
            return None
        self._kept[key] = (diagnosis.at, name)
        return diagnosis, diagnosis.at // 60 != at // 60

    async def verdicts(self, key: Key | None, start: float, end: float, step: float) -> list[VerdictPoint]:
        """The worst verdict of each rank in each step of [start, end] that has one; `step` in seconds."""

        def work(db: sqlite3.Connection) -> list[VerdictPoint]:
            found = list(evaluations.verdicts(db, key, start, end, step))
            return _with_headlines(found, transitions.between(db, 0.0, end, key, 0, -1), step)

        return await self._read(work, [])

    async def signals(
        self, key: Key, names: Sequence[str], start: float, end: float, step: float
    ) -> dict[str, list[tuple[float, float | None]]]:
        """(start of the step, mean of the signal or None) for each name, for the steps that have evaluations."""
        return await self._read(
            lambda db: evaluations.signals(db, key, names, start, end, step), {name: [] for name in names}
        )

    async def transitions(
        self, start: float, end: float, key: Key | None = None, after_id: int = 0, limit: int = 1000
    ) -> list[Transition]:
        """Those in [start, end] with an id above `after_id`, oldest first."""
        none: list[Transition] = []
        stored = await self._read(lambda db: transitions.between(db, start, end, key, after_id, limit), none)
        known = {one.id for one in stored}
        wanted = [
            one
            for one in tuple(self._overflow.transitions)
            if start <= one.at <= end and one.id > after_id and key in (None, one.key) and one.id not in known
        ]
        return sorted([*stored, *wanted], key=lambda one: one.id)[:limit]

    async def last_transitions(self) -> list[Transition]:
        """The newest of every rank: what was known before a restart."""
        return await self._read(transitions.last_of_each, [])

    # ---------------------------------------------------------------- outbox and webhook

    async def outbox_add(self, items: Sequence[OutboxItem]) -> None:
        """Committed (fsync) when it returns; kept in memory while the disk fails."""
        await self._in_writer(lambda: self._write(lambda db: outbox.add(db, items), lambda: self._overflow.add(items)))

    async def outbox_due(self, now: float, limit: int) -> list[OutboxItem]:
        """Pending items whose time has come, the longest due first."""

        def work() -> list[OutboxItem]:
            none: list[OutboxItem] = []
            stored = self._query(self._store.writer, lambda db: outbox.due(db, now, limit), none)
            return self._overflow.due(stored, now, limit)

        return await self._in_writer(work)

    async def outbox_update(self, item_id: str, *, state: str, attempts: int, next_at: float, error: str) -> None:
        """What became of an item: pending (again), done or dead."""

        def work() -> None:
            self._write(
                lambda db: outbox.update(db, item_id, state, attempts, next_at, error),
                lambda: self._overflow.update(item_id, state, attempts, next_at, error),
            )

        await self._in_writer(work)

    async def outbox_counts(self) -> Mapping[str, int]:
        """Items by state."""
        return await self._read(outbox.counts, {})

    async def webhook_put(self, result: WebhookResult) -> None:
        """Keeps what an inbound alert led to; a result of the same id is replaced."""
        await self._in_writer(lambda: self._write(lambda db: outbox.put_result(db, result)))

    async def webhook_results(self, limit: int = 100) -> list[WebhookResult]:
        """The newest first."""
        return await self._read(lambda db: outbox.results(db, limit), [])

    # ---------------------------------------------------------------- in the threads

    async def _in_writer(self, work: Callable[[], T]) -> T:
        # Shielded: a caller that is cancelled must not leave a half-told story.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writer, work))

    async def _read(self, work: Callable[[sqlite3.Connection], T], empty: T) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, lambda: self._query(self._store.reader, work, empty))

    def _query(self, db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T], empty: T) -> T:
        try:
            return work(db)
        except sqlite3.Error as error:
            self._problem = f"the history cannot be read ({reason(error)})."
            return empty

    def _write(
        self, work: Callable[[sqlite3.Connection], object], instead: Callable[[], object] = lambda: None
    ) -> bool:
        """One transaction with what is left from failed ones. False, and `instead` is done, if it fails."""
        db = self._store.writer
        try:
            db.execute("BEGIN IMMEDIATE")
            self._overflow.flush(db, self._ids)
            work(db)
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(db, error)
            instead()
            return False
        self._overflow.clear()
        self._problem = ""
        return True

    def _give_up(self, db: sqlite3.Connection, error: sqlite3.Error) -> None:
        self._ids = Ids(db)
        self._problem = f"the history is not being written ({reason(error)}); verdicts go on."
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except sqlite3.Error as second:
            self._problem = f"the history is not being written ({reason(second)}); verdicts go on."

    def _tidy(self, now: float) -> None:
        if self._write(lambda db: upkeep.tidy(db, now, self._retention, self._store.max_bytes)):
            self._query(self._store.writer, lambda db: db.execute("PRAGMA incremental_vacuum").fetchall(), [])


def _with_headlines(points: list[VerdictPoint], found: list[Transition], step: float) -> list[VerdictPoint]:
    """Each point with the headline of the last transition to its verdict that began before the step's end."""
    by_name: dict[tuple[Key, str], list[Transition]] = {}
    for one in found:
        by_name.setdefault((one.key, one.after), []).append(one)
    out = []
    for point in points:
        name = f"{point.bottleneck}/{point.mode}" if point.mode else point.bottleneck
        before = [one for one in by_name.get((point.key, name), ()) if one.at <= point.at + step]
        out.append(replace(point, headline=before[-1].headline if before else ""))
    return out
