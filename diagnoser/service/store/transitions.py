"""Changes of verdicts, kept for ever within the size bound."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from diagnoser.service.board import Key, Transition
from diagnoser.service.store.ids import Ids

_COLUMNS = "id, engine, at, before, after, severity_before, severity, headline, model, family"
_SELECT = (
    "SELECT t.id, e.target, e.rank, t.at, t.before, t.after, t.severity_before, t.severity, t.headline, t.model,"
    " t.family FROM transitions t JOIN engines e ON e.id = t.engine"
)


def newest_id(db: sqlite3.Connection) -> int:
    """The highest id given so far."""
    found: int = db.execute("SELECT coalesce(max(id), 0) FROM transitions").fetchone()[0]
    return found


def add(db: sqlite3.Connection, ids: Ids, transitions: Iterable[Transition]) -> None:
    """Keeps them under their own ids."""
    rows = [
        (t.id, ids.engine(t.key), t.at, t.before, t.after, t.severity_before, t.severity, t.headline, t.model, t.family)
        for t in transitions
    ]
    db.executemany(f"INSERT OR IGNORE INTO transitions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def between(
    db: sqlite3.Connection, start: float, end: float, key: Key | None, after_id: int, limit: int
) -> list[Transition]:
    """Those in [start, end] with an id above `after_id`, oldest first."""
    where, values = "t.at >= ? AND t.at <= ? AND t.id > ?", [start, end, after_id]
    found: Sequence[object] = values
    if key is not None:
        where, found = f"{where} AND e.target = ? AND e.rank = ?", [*values, key.target, key.rank]
    return [_transition(row) for row in db.execute(f"{_SELECT} WHERE {where} ORDER BY t.id LIMIT ?", [*found, limit])]


def last_of_each(db: sqlite3.Connection, since: float) -> list[Transition]:
    """The newest of every engine rank that was evaluated since then."""
    newest = "SELECT max(id) FROM transitions GROUP BY engine"
    seen = "(SELECT max(x.at) FROM evaluations x WHERE x.engine = t.engine) >= ?"
    return [_transition(row) for row in db.execute(f"{_SELECT} WHERE t.id IN ({newest}) AND {seen}", (since,))]


def _transition(row: Sequence[object]) -> Transition:
    number, target, rank, *rest = row
    return Transition(number, Key(target, rank), *rest)  # type: ignore[arg-type]
