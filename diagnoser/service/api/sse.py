"""Server-sent events: what changed, as it changes. Nothing is queued: each client holds a position, and whoever reads
slowly is told the present state when it is ready for more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from diagnoser.language import Language
from diagnoser.service.api import models, views
from diagnoser.service.api.engines import Filter
from diagnoser.service.api.problems import Problem
from diagnoser.service.board import Transition

if TYPE_CHECKING:
    from diagnoser.service.api.security import Guard
    from diagnoser.service.service import Service

HEARTBEAT_SECONDS = 15.0
SEND_SECONDS = 20.0
"""A client that takes nothing for so long is cut off; it may come back with its last id."""
RETRY_MILLISECONDS = 2000
FOREVER = 1e11
KEPT_TRANSITIONS = 1000
"""Transitions kept for all clients together; who is further behind gets them from the history."""


class Events:
    """What all clients of the stream share."""

    def __init__(self, service: Service, heartbeat: float = HEARTBEAT_SECONDS) -> None:
        self.service, self.heartbeat = service, heartbeat
        self.clients = 0
        self.closing = False
        self.newest = 0
        """Id of the last transition there was."""
        self.recent: deque[Transition] = deque(maxlen=KEPT_TRANSITIONS)
        self._pulse = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begins to watch the board."""
        self.closing = False
        self.newest = max((one.id for one in await self.service.history.last_transitions()), default=0)
        self.service.listeners.append(self.heard)
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        cursor = self.service.board.cursor
        while True:
            cursor = await self.service.board.changed(cursor)
            self._wake()

    def heard(self, transitions: Sequence[Transition]) -> None:
        """New transitions."""
        self.recent.extend(transitions)
        self.newest = max((self.newest, *(one.id for one in transitions)))
        if transitions:
            self._wake()

    def _wake(self) -> None:
        self._pulse.set()
        self._pulse = asyncio.Event()

    async def woken(self, ends: float) -> bool:
        """True when anything has changed or the time for a heartbeat has come, False at the end."""
        now = asyncio.get_running_loop().time()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(ends, now + self.heartbeat)):
                await self._pulse.wait()
        return not self.closing and asyncio.get_running_loop().time() < ends

    async def close(self) -> None:
        """Ends all streams, so that the server can stop."""
        self.closing = True
        self._wake()
        with suppress(ValueError):
            self.service.listeners.remove(self.heard)
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching


class Removed(BaseModel):
    """An engine that is gone, or no longer matches."""

    id: str


@dataclass(slots=True)
class Position:
    """What a client has seen: `cursor` of the board and the id of the last transition; None = nothing yet."""

    cursor: int | None
    transition: int | None
    ids: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, service: Service, text: str) -> Position:
        """From a Last-Event-ID. Cursors of an earlier run mean nothing, ids of transitions go on."""
        parts = text.strip().split(".")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts[1:]):
            return cls(None, None)
        return cls(views.since(service, f"{parts[0]}.{parts[1]}"), int(parts[2]))


class Stream:
    """The events of one client, from its position on."""

    def __init__(self, events: Events, wanted: Filter, last_id: str, language: Language) -> None:
        self._events, self._service, self._wanted = events, events.service, wanted
        self._language: Language = language
        self._position = Position.of(events.service, last_id)

    async def run(self, ends: float) -> AsyncIterator[str]:
        """Events as text until the loop's time `ends`; a comment when nothing happened."""
        yield f"retry: {RETRY_MILLISECONDS}\n\n"
        async for text in self._catch_up():
            yield text
        while await self._events.woken(ends):
            told = [self._event("transition", one) for one in await self._transitions()]
            yield "".join((*self._changes(), *told)) or ": still here\n\n"

    async def _catch_up(self) -> AsyncIterator[str]:
        """The fleet as it is, or what has changed since the position; then the transitions that were missed."""
        missed = await self._transitions()
        position, board = self._position, self._service.board
        matching = self._wanted.chosen(board.entries())
        changed = [e for e in matching if position.cursor is None or e.cursor > position.cursor]
        complete, position.cursor = position.cursor is None, board.cursor
        position.ids = {entry.key.id for entry in matching}
        fleet = models.Engines(
            cursor=views.cursor(self._service),
            complete=complete,
            ids=[entry.key.id for entry in matching],
            engines=[views.engine(entry, self._language) for entry in changed],
        )
        yield self._event("fleet", fleet)
        for one in missed:
            yield self._event("transition", one)

    def _changes(self) -> list[str]:
        position, board = self._position, self._service.board
        if position.cursor == board.cursor:
            return []
        matching = self._wanted.chosen(board.entries())
        changed = [entry for entry in matching if entry.cursor > (position.cursor or 0)]
        ids = {entry.key.id for entry in matching}
        gone, came = position.ids - ids, ids - position.ids
        position.cursor, position.ids = board.cursor, ids
        # One that matches only now may have changed earlier, as what it is filtered by did.
        shown = changed + [e for e in matching if e.key.id in came and e not in changed]
        return [
            *(self._event("removed", Removed(id=name)) for name in sorted(gone)),
            *(self._event("verdict", views.engine(entry, self._language)) for entry in shown),
        ]

    async def _transitions(self) -> list[models.TransitionItem]:
        """Those after the position, in order."""
        events, position = self._events, self._position
        if position.transition is None:
            position.transition = events.newest
        if position.transition >= events.newest:
            return []
        found = [one for one in events.recent if one.id > position.transition]
        if not found or found[0].id > position.transition + 1:
            found = await self._service.history.transitions(0.0, FOREVER, None, position.transition, KEPT_TRANSITIONS)
        position.transition = max((one.id for one in found), default=events.newest)
        return [views.transition(one, self._language) for one in found if self._concerns(one)]

    def _concerns(self, one: Transition) -> bool:
        wanted = self._wanted
        asked = ((wanted.target, one.key.target), (wanted.model, one.model), (wanted.family, one.family))
        return all(not names or name in names for names, name in asked)

    def _event(self, name: str, data: BaseModel) -> str:
        position = self._position
        where = f"{views.boot(self._service)}.{position.cursor or 0}.{position.transition or 0}"
        return f"event: {name}\nid: {where}\ndata: {data.model_dump_json()}\n\n"


class EventResponse(Response):
    """A stream that ends when the client goes, reads nothing for too long, or may not read any more."""

    media_type = "text/event-stream"

    def __init__(self, stream: Stream, events: Events, guard: Guard, seconds: float | None) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._stream, self._events, self._guard, self._seconds = stream, events, guard, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends until one of the ends is reached."""
        self._events.clients += 1
        writing, gone = asyncio.create_task(self._write(scope, send)), asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._events.clients -= 1
            writing.cancel()
            gone.cancel()
            await asyncio.gather(writing, gone, return_exceptions=True)

    async def _write(self, scope: Scope, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        headers = Headers(scope=scope)
        ends = asyncio.get_running_loop().time() + (self._seconds or float("inf"))
        async for text in self._stream.run(ends):
            async with asyncio.timeout(SEND_SECONDS):
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
            if not self._guard.still_valid(headers):
                break
        await send({"type": "http.response.body", "body": b""})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def respond(
    events: Events, guard: Guard, wanted: Filter, last_id: str, seconds: float | None, language: Language
) -> EventResponse:
    """The stream as an answer. Problem 503 if there are too many already."""
    if events.closing or events.clients >= guard.settings.max_events:
        raise Problem(503, "Too many clients read events already (web.max_events).", "busy", {"Retry-After": "10"})
    return EventResponse(Stream(events, wanted, last_id, language), events, guard, seconds)
