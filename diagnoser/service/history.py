"""What the service remembers: one SQLite file (WAL). Work happens in threads; nothing here raises for a bad disk.

What a call has returned for is on the disk (synchronous = FULL). While the disk is full or fails, `healthy` is False,
messages and transitions are kept in memory, and are written as soon as that works again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from diagnoser.model import Diagnosis
from diagnoser.service.board import Key, Transition, key_of, name_of
from diagnoser.service.records import OutboxItem, VerdictPoint, WebhookResult
from diagnoser.service.store import evaluations, outbox, transitions
from diagnoser.service.store.worker import HistoryError, Worker

__all__ = ["KEY_SIGNALS", "History", "HistoryError", "OutboxItem", "VerdictPoint", "WebhookResult"]

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
FORGET_SECONDS = 3600.0
"""Engines that were not evaluated for so long are new when they are again."""
HEADLINE_SECONDS = 86400.0
"""How long before a range the words of a verdict in it are looked for."""


class History:
    """Create with `await History.open(...)`."""

    def __init__(self, worker: Worker, retention_seconds: float) -> None:
        self._worker, self._retention = worker, retention_seconds
        self._next_id = worker.newest_id + 1
        self._kept: dict[Key, tuple[float, str]] = {}
        self._tidied = 0.0

    @classmethod
    async def open(cls, path: Path | None, retention_seconds: float, max_bytes: int) -> History:
        """The history at `path`, made if it is not there; None keeps it in memory."""
        return cls(await asyncio.to_thread(Worker, path, max_bytes), retention_seconds)

    @property
    def healthy(self) -> bool:
        """Is everything being written?"""
        return not self.problem

    @property
    def problem(self) -> str:
        """Why not, as a sentence."""
        return self._worker.problem

    async def close(self) -> None:
        """Waits for what is being written, and closes the file."""
        await self._worker.close()

    async def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` in one transaction, committed when it returns. Raises HistoryError if that is not possible."""
        return await self._worker.transact(work)

    # ---------------------------------------------------------------- evaluations and transitions

    async def record(self, diagnoses: Sequence[Diagnosis], found: Sequence[Transition]) -> tuple[Transition, ...]:
        """Keeps one round of evaluation. Returns the transitions with their ids."""
        numbered = tuple(replace(one, id=self._next_id + place) for place, one in enumerate(found))
        self._next_id += len(numbered)
        rows = [row for row in map(self._row, diagnoses) if row is not None]
        worker, now = self._worker, max((one.at for one in diagnoses), default=0.0)

        def work(db: sqlite3.Connection) -> None:
            evaluations.add(db, worker.ids, KEY_SIGNALS, rows)
            transitions.add(db, worker.ids, numbered)

        if rows or numbered or not self.healthy:
            await worker.write(work, lambda: worker.overflow.transitions.extend(numbered))
        if now >= self._tidied + TIDY_SECONDS:
            self._tidied = now
            self._kept = {key: kept for key, kept in self._kept.items() if kept[0] > now - FORGET_SECONDS}
            await worker.tidy(now, self._retention)
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
            recent = transitions.between(db, start - HEADLINE_SECONDS, end, key, 0, -1)
            return _with_headlines(found, recent, step)

        return await self._worker.read(work, [])

    async def signals(
        self, key: Key, names: Sequence[str], start: float, end: float, step: float
    ) -> dict[str, list[tuple[float, float | None]]]:
        """(start of the step, mean of the signal or None) for each name, for the steps that have evaluations."""
        empty: dict[str, list[tuple[float, float | None]]] = {name: [] for name in names}
        return await self._worker.read(lambda db: evaluations.signals(db, key, names, start, end, step), empty)

    async def transitions(
        self, start: float, end: float, key: Key | None = None, after_id: int = 0, limit: int = 1000
    ) -> list[Transition]:
        """Those in [start, end] with an id above `after_id`, oldest first."""

        def merge(stored: list[Transition]) -> list[Transition]:
            found = {one.id: one for one in stored}
            for one in self._worker.overflow.transitions:
                if start <= one.at <= end and one.id > after_id and key in (None, one.key):
                    found[one.id] = one
            return sorted(found.values(), key=lambda one: one.id)[:limit]

        empty: list[Transition] = []
        if self.healthy:
            return await self._worker.read(lambda db: transitions.between(db, start, end, key, after_id, limit), empty)
        return await self._worker.read_merged(
            lambda db: transitions.between(db, start, end, key, after_id, limit), merge, empty
        )

    async def last_transitions(self, since: float = 0.0) -> list[Transition]:
        """The newest of every rank that was evaluated since then: what was known before a restart."""
        empty: list[Transition] = []
        return await self._worker.read(lambda db: transitions.last_of_each(db, since), empty)

    # ---------------------------------------------------------------- outbox and webhook

    async def outbox_add(self, items: Sequence[OutboxItem]) -> None:
        """Committed (fsync) when it returns; kept in memory, and due from there, while the disk fails."""
        overflow = self._worker.overflow
        await self._worker.write(lambda db: outbox.add(db, items), lambda: overflow.add(items))

    async def outbox_due(self, now: float, limit: int, receiver: str = "") -> list[OutboxItem]:
        """Pending items (of that receiver) whose time has come, the longest due first."""
        empty: list[OutboxItem] = []
        return await self._worker.read_merged(
            lambda db: outbox.due(db, now, limit, receiver),
            lambda stored: self._worker.overflow.due(stored, now, limit, receiver),
            empty,
        )

    async def outbox_update(self, item_id: str, *, state: str, attempts: int, next_at: float, error: str) -> None:
        """What became of an item: pending (again), done or dead."""
        await self._worker.write(
            lambda db: outbox.update(db, item_id, state, attempts, next_at, error),
            lambda: self._worker.overflow.update(item_id, state, attempts, next_at, error),
        )

    async def outbox_counts(self) -> Mapping[str, int]:
        """Items by state."""
        return await self._worker.read_merged(outbox.counts, self._worker.overflow.counts, {})

    async def outbox_sent(self, receiver: str, since: float) -> int:
        """How many items that receiver has accepted since then."""
        return await self._worker.read(lambda db: outbox.sent(db, receiver, since), 0)

    async def outbox_list(self, state: str, limit: int) -> list[OutboxItem]:
        """Items of that state, the newest first."""
        empty: list[OutboxItem] = []
        return await self._worker.read(lambda db: outbox.listed(db, state, limit), empty)

    async def webhook_results(self, limit: int = 100) -> list[WebhookResult]:
        """The newest first."""
        empty: list[WebhookResult] = []
        return await self._worker.read(lambda db: outbox.results(db, limit), empty)


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
