"""Opens the history file, and says in a sentence why it cannot be used."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from diagnoser.service import migrations

MEMORY_BYTES = 64 * 2**20
"""Bound of a history in memory."""
MIN_BYTES = 2**20
WRITES_SHARE = 0.95
"""Of the file's bound; the rest is for making room, which itself needs some."""


@dataclass
class Opened:
    """`writer` and `reader` are the same connection in memory. `problem` is a sentence, "" = none."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection
    max_bytes: int
    path: Path | None = None
    problem: str = ""
    lock: int = -1

    def close(self) -> None:
        """Closes the connections, the reader first; the last one to close folds the WAL into the file."""
        if self.reader is not self.writer:
            self.reader.close()
        self.writer.close()
        if self.lock >= 0:
            os.close(self.lock)


def open_store(path: Path | None, max_bytes: int) -> Opened:
    """The file, or a history in memory where there is none or it cannot be used. A damaged file is put aside."""
    if path is None:
        return _memory(max_bytes)
    lock = -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock(path)
        try:
            return _file(path, max_bytes, lock)
        except sqlite3.DatabaseError as error:
            if not _damaged(error):
                raise
        aside = path.with_name(f"{path.name}.damaged-{time.time():.0f}")
        _put_aside(path, aside)
        opened = _file(path, max_bytes, lock)
        opened.problem = f"{path} is damaged and was put aside as {aside.name}; a new history was begun."
        return opened
    except (OSError, sqlite3.Error, migrations.NewerFileError) as error:
        if lock >= 0:
            os.close(lock)
        opened = _memory(max_bytes)
        opened.problem = f"{path} cannot be used ({reason(error)}): the history is in memory only until a restart."
        return opened


def _memory(max_bytes: int) -> Opened:
    db = _connect(":memory:")
    migrations.migrate(db)
    return Opened(db, db, min(max_bytes, MEMORY_BYTES))


def _file(path: Path, max_bytes: int, lock: int) -> Opened:
    fresh = not path.exists()
    db = _connect(str(path))
    try:
        if fresh:
            path.chmod(0o600)
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        elif Path(f"{path}-wal").exists() and (bad := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(f"malformed: {bad}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA journal_size_limit = 16777216")
        limit(db, max(MIN_BYTES, max_bytes), WRITES_SHARE)
        migrations.migrate(db)
        db.execute("BEGIN IMMEDIATE")  # a file that cannot be written is known now
        db.execute("PRAGMA application_id = 1818322276")
        db.execute("COMMIT")
        reader = _connect(str(path))
        reader.execute("PRAGMA query_only = ON")
    except BaseException:
        db.close()
        raise
    return Opened(db, reader, max(MIN_BYTES, max_bytes), path, lock=lock)


def limit(db: sqlite3.Connection, max_bytes: int, share: float) -> None:
    """The file does not grow above that share of its bound."""
    (page,) = db.execute("PRAGMA page_size").fetchone()
    db.execute(f"PRAGMA max_page_count = {int(share * max_bytes) // page}").fetchone()


def _connect(name: str) -> sqlite3.Connection:
    return sqlite3.connect(name, isolation_level=None, check_same_thread=False, timeout=5.0)


def _lock(path: Path) -> int:
    """Two services must not give the same numbers to different transitions."""
    handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise OSError("another `diagnose serve` is using it") from None
    return handle


def _damaged(error: sqlite3.DatabaseError) -> bool:
    return "malformed" in str(error) or "not a database" in str(error)


def _put_aside(path: Path, aside: Path) -> None:
    for tail in ("", "-wal", "-shm"):
        found = Path(f"{path}{tail}")
        if found.exists():
            found.rename(f"{aside}{tail}")


def reason(error: Exception) -> str:
    """Why, for the user."""
    text = str(error) or type(error).__name__
    known = {"database or disk is full": "the disk is full, or max_size is reached", "disk I/O error": "the disk fails"}
    return known.get(text, text)
