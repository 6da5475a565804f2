"""How long the event loop was kept from running: a target must not be blamed for a stall of ours."""

from __future__ import annotations

import asyncio
from collections import deque

LOOK_SECONDS = 0.1
STALL_SECONDS = 0.1
"""Shorter delays are the usual ones."""


class Lag:
    """Watches the loop it is started in."""

    def __init__(self) -> None:
        self._stalls: deque[tuple[float, float]] = deque(maxlen=256)
        """(loop time of the end, seconds)"""
        self._task: asyncio.Task[None] | None = None
        self.worst = 0.0

    def start(self) -> None:
        """Watches from now on."""
        self._task = asyncio.create_task(self._run(), name="lag")

    def stop(self) -> None:
        """Watches no more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(LOOK_SECONDS)
            late = loop.time() - before - LOOK_SECONDS
            if late > STALL_SECONDS:
                self._stalls.append((loop.time(), late))
                self.worst = max(self.worst, late)

    def since(self, began: float) -> float:
        """Seconds of stalls since that loop time."""
        return sum(late for ended, late in self._stalls if ended >= began)
