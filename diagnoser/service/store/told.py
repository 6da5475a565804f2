"""What each receiver was told last of each engine rank, while that lasts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from diagnoser.service.board import Key

Row = tuple[str, Key, str | None]
"""Receiver, engine rank, and the event as JSON; None: nothing is firing there."""


def rows(db: sqlite3.Connection) -> Iterator[tuple[str, Key, str]]:
    """Everything that fires somewhere."""
    for receiver, target, rank, body in db.execute("SELECT receiver, target, rank, body FROM told"):
        yield receiver, Key(target, rank), body


def put(db: sqlite3.Connection, changed: Iterable[Row]) -> None:
    """What they know now."""
    for receiver, key, body in changed:
        if body is None:
            where = (receiver, key.target, key.rank)
            db.execute("DELETE FROM told WHERE receiver = ? AND target = ? AND rank = ?", where)
        else:
            row = (receiver, key.target, key.rank, body)
            db.execute("INSERT OR REPLACE INTO told (receiver, target, rank, body) VALUES (?, ?, ?, ?)", row)
