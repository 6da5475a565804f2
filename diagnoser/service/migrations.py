"""The history file's tables, a step a version: PRAGMA user_version says which steps a file has seen.

A step is never changed once released; what is new is a new step. A file of a newer version is refused.
"""

from __future__ import annotations

import sqlite3

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE engines (
        id INTEGER PRIMARY KEY, target TEXT NOT NULL, rank TEXT NOT NULL, UNIQUE (target, rank)
    );
    CREATE TABLE verdicts (
        id INTEGER PRIMARY KEY, bottleneck TEXT NOT NULL, mode TEXT, severity TEXT NOT NULL, confidence TEXT NOT NULL,
        l2 TEXT NOT NULL, urgency INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX verdicts_once
        ON verdicts (bottleneck, coalesce(mode, ''), severity, confidence, l2, urgency);
    CREATE TABLE layouts (id INTEGER PRIMARY KEY, names TEXT NOT NULL UNIQUE);
    CREATE TABLE evaluations (
        engine INTEGER NOT NULL, at REAL NOT NULL, verdict INTEGER NOT NULL, minute INTEGER NOT NULL,
        layout INTEGER NOT NULL, signals BLOB NOT NULL, PRIMARY KEY (engine, at)
    ) WITHOUT ROWID;
    CREATE TABLE transitions (
        id INTEGER PRIMARY KEY, engine INTEGER NOT NULL, at REAL NOT NULL, before TEXT, after TEXT NOT NULL,
        severity_before TEXT, severity TEXT NOT NULL, headline TEXT NOT NULL, model TEXT NOT NULL, family TEXT NOT NULL
    );
    CREATE INDEX transitions_by_time ON transitions (at);
    CREATE INDEX transitions_by_engine ON transitions (engine, at);
    CREATE TABLE outbox (
        id TEXT PRIMARY KEY, receiver TEXT NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL,
        created_at REAL NOT NULL, next_at REAL NOT NULL, attempts INTEGER NOT NULL, state TEXT NOT NULL,
        error TEXT NOT NULL
    );
    CREATE INDEX outbox_due ON outbox (state, next_at);
    CREATE TABLE webhook_results (
        id TEXT PRIMARY KEY, group_key TEXT NOT NULL, fingerprint TEXT NOT NULL, status TEXT NOT NULL,
        received_at REAL NOT NULL, body TEXT NOT NULL
    );
    CREATE INDEX webhook_results_by_time ON webhook_results (received_at);
    CREATE TABLE told (
        receiver TEXT NOT NULL, target TEXT NOT NULL, rank TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (receiver, target, rank)
    ) WITHOUT ROWID;
    CREATE TABLE silences (id TEXT PRIMARY KEY, ends_at REAL NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
    """,
)


class NewerFileError(Exception):
    """The file was written by a newer version of this program."""


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the file to the newest version, each step in a transaction of its own."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(STEPS):
        raise NewerFileError(f"it has version {version}, this program knows {len(STEPS)}")
    for number in range(version, len(STEPS)):
        try:
            connection.executescript(f"BEGIN IMMEDIATE;{STEPS[number]};PRAGMA user_version = {number + 1};COMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
