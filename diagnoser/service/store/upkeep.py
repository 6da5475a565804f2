"""Keeps the file within its retention and its size."""

from __future__ import annotations

import sqlite3

THIN_AFTER_SECONDS = 86400.0
"""Older evaluations are kept one a minute."""
SETTLED_SECONDS = 86400.0
"""A delivered message is remembered at least so long, so that it is not sent again under the same id."""
DEAD_SECONDS = 7 * 86400.0
_FULL, _AIM = 0.9, 0.8
"""Above the first share of the bound the oldest rows go, down to the second."""
_SLICES = 50


def tidy(db: sqlite3.Connection, now: float, retention: float, max_bytes: int) -> None:
    """Drops what is too old; then, while the file is too large, the oldest evaluations and at last transitions."""
    old, thin = "DELETE FROM evaluations WHERE engine = ? AND at < ?", " AND minute = 0"
    for (engine,) in db.execute("SELECT id FROM engines").fetchall():
        db.execute(old, (engine, now - retention))
        db.execute(old + thin, (engine, now - THIN_AFTER_SECONDS))
    settled = now - max(retention, SETTLED_SECONDS)
    db.execute("DELETE FROM outbox WHERE state = 'done' AND created_at < ?", (settled,))
    db.execute("DELETE FROM outbox WHERE state = 'dead' AND created_at < ?", (now - DEAD_SECONDS,))
    db.execute("DELETE FROM webhook_results WHERE received_at < ?", (now - retention,))
    if used_bytes(db) > _FULL * max_bytes:
        _shrink(db, max_bytes)


def used_bytes(db: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _shrink(db: sqlite3.Connection, max_bytes: int) -> None:
    for table in ("evaluations", "webhook_results", "transitions"):
        column = "received_at" if table == "webhook_results" else "at"
        while used_bytes(db) > _AIM * max_bytes:
            first, last = db.execute(f"SELECT min({column}), max({column}) FROM {table}").fetchone()
            if first is None:
                break
            db.execute(f"DELETE FROM {table} WHERE {column} <= ?", (first + (last - first) / _SLICES,))
