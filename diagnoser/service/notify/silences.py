"""Maintenance silences: of the configuration, and added at run time, which are kept in the history file."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field, model_validator

from diagnoser.service.config_base import Strict
from diagnoser.service.history import History, HistoryError
from diagnoser.service.notify.event import fingerprint
from diagnoser.service.notify.fields import Match, Moment
from diagnoser.service.notify.settings import SilenceSettings

log = logging.getLogger("diagnoser.notify")
CONFIGURED, ADDED = "configuration", "api"
_KEPT_SECONDS = 7 * 86400.0


class NewSilence(Strict):
    """What a request to silence says. Without `from` it begins now; it must end."""

    match: Match
    """Globs by label: target, rank, model, family, bottleneck, mode, severity, or a label of the target."""
    starts_at: Annotated[Moment, Field(alias="from")] = None
    ends_at: Annotated[Moment, Field(alias="until")]
    comment: Annotated[str, Field(max_length=1000)] = ""
    author: Annotated[str, Field(max_length=200)] = ""

    @model_validator(mode="after")
    def _ends(self) -> NewSilence:
        if self.ends_at is None or self.ends_at <= (self.starts_at or 0.0):
            raise ValueError("until must be a time after from")
        return self


@dataclass(frozen=True, slots=True)
class Silence:
    """Times are unix seconds; `ends_at` None is for ever. `source`: configuration or api."""

    id: str
    match: Mapping[str, str]
    starts_at: float
    ends_at: float | None
    comment: str
    author: str
    source: str

    def active(self, now: float) -> bool:
        """Does it hold at that time?"""
        return self.starts_at <= now < (math.inf if self.ends_at is None else self.ends_at)

    def ended(self, now: float) -> bool:
        """Is it over?"""
        return self.ends_at is not None and self.ends_at <= now

    def covers(self, labels: Mapping[str, str]) -> bool:
        """Do all its globs match? A label that is not there is empty."""
        return all(fnmatchcase(labels.get(name, ""), glob) for name, glob in self.match.items())

    def as_data(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "match": dict(self.match)}


class Silences:
    """All silences. Create with `await Silences.open(...)`."""

    def __init__(self, history: History, kept: Sequence[Silence], clock: Callable[[], float]) -> None:
        self._history, self._clock = history, clock
        self._added = {one.id: one for one in kept}
        self._configured: tuple[Silence, ...] = ()

    @classmethod
    async def open(cls, history: History, clock: Callable[[], float] = time.time) -> Silences:
        """Those that the history file holds."""
        try:
            kept = await history.transact(lambda db: db.execute("SELECT body FROM silences").fetchall())
        except HistoryError as error:
            log.error("silences added at run time are not known: %s", error)
            kept = []
        return cls(history, [Silence(**json.loads(body)) for (body,) in kept], clock)

    def use(self, configured: Sequence[SilenceSettings]) -> None:
        """Those of the configuration, after a (re)load."""
        self._configured = tuple(
            Silence(
                fingerprint("silence", sorted(one.match.items()), one.starts_at, one.ends_at)[:12],
                one.match,
                one.starts_at or 0.0,
                one.ends_at,
                one.comment,
                "",
                CONFIGURED,
            )
            for one in configured
        )

    def list(self, now: float | None = None) -> tuple[Silence, ...]:
        """All that are not over, the next to begin last."""
        at = self._clock() if now is None else now
        found = [one for one in (*self._configured, *self._added.values()) if not one.ended(at)]
        return tuple(sorted(found, key=lambda one: (one.starts_at, one.id)))

    def of(self, labels: Mapping[str, str], now: float) -> Silence | None:
        """One that holds for these labels now."""
        return next((one for one in self.list(now) if one.active(now) and one.covers(labels)), None)

    async def add(self, wish: NewSilence) -> Silence:
        """From now on it counts, also after a restart. HistoryError if it cannot be kept."""
        now = self._clock()
        starts_at = now if wish.starts_at is None else wish.starts_at
        added = Silence(uuid.uuid4().hex[:12], wish.match, starts_at, wish.ends_at, wish.comment, wish.author, ADDED)
        await self._history.transact(lambda db: _put(db, added, now))
        self._added[added.id] = added
        return added

    async def end(self, silence_id: str) -> bool:
        """Ends one now. False if it is unknown, over, or of the configuration. HistoryError if that cannot be kept."""
        now = self._clock()
        found = self._added.get(silence_id)
        if found is None or found.ended(now):
            return False
        ended = replace(found, ends_at=now)
        await self._history.transact(lambda db: _put(db, ended, now))
        self._added[silence_id] = ended
        return True


def _put(db: sqlite3.Connection, one: Silence, now: float) -> None:
    end = one.ends_at if one.ends_at is not None else math.inf
    body = json.dumps(one.as_data())
    db.execute("INSERT OR REPLACE INTO silences (id, ends_at, body) VALUES (?, ?, ?)", (one.id, end, body))
    db.execute("DELETE FROM silences WHERE ends_at < ?", (now - _KEPT_SECONDS,))
