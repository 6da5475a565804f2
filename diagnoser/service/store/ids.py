"""Small numbers for what rows repeat: engine ranks, verdicts, lists of signals."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from diagnoser.model import Diagnosis
from diagnoser.outputs.base import urgency
from diagnoser.service.board import Key


class Ids:
    """Looks up or adds. Remembers what it saw; after a rollback it must be made anew."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._engines: dict[Key, int] = {}
        self._verdicts: dict[tuple[object, ...], int] = {}
        self._layouts: dict[tuple[str, ...], int] = {}

    def engine(self, key: Key) -> int:
        """The number of an engine rank."""
        if key not in self._engines:
            self._db.execute("INSERT OR IGNORE INTO engines (target, rank) VALUES (?, ?)", (key.target, key.rank))
            where = "SELECT id FROM engines WHERE target = ? AND rank = ?"
            self._engines[key] = self._db.execute(where, (key.target, key.rank)).fetchone()[0]
        return self._engines[key]

    def verdict(self, diagnosis: Diagnosis) -> int:
        """The number of a verdict without its words."""
        found = diagnosis.verdict
        row = (found.bottleneck, found.mode, found.severity, found.confidence, found.l2.value, urgency(diagnosis))
        if row not in self._verdicts:
            columns = "bottleneck, mode, severity, confidence, l2, urgency"
            self._db.execute(f"INSERT OR IGNORE INTO verdicts ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)
            where = "bottleneck = ? AND mode IS ? AND severity = ? AND confidence = ? AND l2 = ? AND urgency = ?"
            self._verdicts[row] = self._db.execute(f"SELECT id FROM verdicts WHERE {where}", row).fetchone()[0]
        return self._verdicts[row]

    def layout(self, names: Sequence[str]) -> int:
        """The number of a list of signal names."""
        names = tuple(names)
        if names not in self._layouts:
            text = " ".join(names)
            self._db.execute("INSERT OR IGNORE INTO layouts (names) VALUES (?)", (text,))
            (found,) = self._db.execute("SELECT id FROM layouts WHERE names = ?", (text,)).fetchone()
            self._layouts[names] = found
        return self._layouts[names]
