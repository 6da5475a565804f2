"""Several messages in one, and which subjects a message is about."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from diagnoser.service.notify.event import Message, fingerprint
from diagnoser.service.records import OutboxItem
from diagnoser.service.store import outbox as table


def store(db: sqlite3.Connection, digest: OutboxItem, notes: Sequence[OutboxItem]) -> None:
    """The digest comes in, and what it holds is settled."""
    table.add(db, [digest])
    for note in notes:
        table.update(db, note.id, note.state, note.attempts, note.next_at, note.error)


def subjects(item: OutboxItem) -> tuple[str, ...]:
    """One that cannot be read, of another version perhaps, stands alone."""
    try:
        data = json.loads(item.payload)
    except ValueError:
        return (item.id,)
    return (data["subject"], *(one["subject"] for one in data.get("messages", ())))


def digest_of(items: Sequence[OutboxItem], receiver: str, now: float) -> OutboxItem:
    """All of them in one message; nothing of them is left out."""
    parts: list[Message] = []
    for item in items:
        message = Message.from_json(item.payload)
        parts += message.messages or (message,)
    name = fingerprint("digest", receiver, *(item.id for item in items))
    return OutboxItem(name, receiver, "digest", Message(f"digest {name}", messages=tuple(parts)).to_json(), now, now)
