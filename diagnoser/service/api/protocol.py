"""HTTP/1.1 with a deadline for the head of a request: who opens a connection and never asks anything is let go."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class Protocol(H11Protocol):
    """uvicorn's protocol and one timer."""

    head_seconds = 15.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first head is awaited."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """A part of a head starts the timer, a whole one ends it."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more is awaited."""
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        if not self._in_head():
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.head_seconds, self._late)

    def _in_head(self) -> bool:
        answered = self.cycle is None or self.cycle.response_complete
        return answered and self.conn.their_state is h11.IDLE and not self.transport.is_closing()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self._in_head():
            self.transport.close()
