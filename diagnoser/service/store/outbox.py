"""Messages on their way, and what inbound alerts led to."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple

from diagnoser.service.records import OutboxItem, WebhookResult

_ITEM = "id, receiver, kind, payload, created_at, next_at, attempts, state, error"
_RESULT = "id, group_key, fingerprint, status, received_at, body"


def add(db: sqlite3.Connection, items: Sequence[OutboxItem]) -> None:
    """Adds those whose id is new."""
    db.executemany(f"INSERT OR IGNORE INTO outbox ({_ITEM}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", map(astuple, items))


def due(db: sqlite3.Connection, now: float, limit: int, receiver: str) -> list[OutboxItem]:
    """Pending items (of that receiver, "" = all) whose time has come, the longest due first."""
    where = "state = 'pending' AND next_at <= ? AND ? IN ('', receiver) ORDER BY next_at, created_at LIMIT ?"
    return [OutboxItem(*row) for row in db.execute(f"SELECT {_ITEM} FROM outbox WHERE {where}", (now, receiver, limit))]


def listed(db: sqlite3.Connection, state: str, limit: int) -> list[OutboxItem]:
    """Items of that state, the newest first."""
    where = f"SELECT {_ITEM} FROM outbox WHERE state = ? ORDER BY created_at DESC LIMIT ?"
    return [OutboxItem(*row) for row in db.execute(where, (state, limit))]


def update(db: sqlite3.Connection, item_id: str, state: str, attempts: int, next_at: float, error: str) -> None:
    """What became of one item."""
    sets = "state = ?, attempts = ?, next_at = ?, error = ?"
    db.execute(f"UPDATE outbox SET {sets} WHERE id = ?", (state, attempts, next_at, error, item_id))


def counts(db: sqlite3.Connection) -> dict[str, int]:
    """Items by state."""
    return dict(db.execute("SELECT state, count(*) FROM outbox GROUP BY state").fetchall())


def sent(db: sqlite3.Connection, receiver: str, since: float) -> int:
    """How many items that receiver has accepted since then. Merged and silenced ones were never tried."""
    where = "state = 'done' AND next_at > ? AND receiver = ? AND attempts > 0"
    return int(db.execute(f"SELECT count(*) FROM outbox WHERE {where}", (since, receiver)).fetchone()[0])


def put_result(db: sqlite3.Connection, result: WebhookResult) -> None:
    """Keeps a result; one of the same id is replaced."""
    db.execute(f"INSERT OR REPLACE INTO webhook_results ({_RESULT}) VALUES (?, ?, ?, ?, ?, ?)", astuple(result))


def results(db: sqlite3.Connection, limit: int) -> list[WebhookResult]:
    """The newest results first."""
    where = f"SELECT {_RESULT} FROM webhook_results ORDER BY received_at DESC LIMIT ?"
    return [WebhookResult(*row) for row in db.execute(where, (limit,))]


def of_kind(db: sqlite3.Connection, kind: str, limit: int) -> list[OutboxItem]:
    """Items of that kind, whatever their state, the newest first."""
    where = f"SELECT {_ITEM} FROM outbox WHERE kind = ? ORDER BY created_at DESC LIMIT ?"
    return [OutboxItem(*row) for row in db.execute(where, (kind, limit))]
