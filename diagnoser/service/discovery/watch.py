"""Keeps the lists of all sources current: each refreshes by itself, a failure leaves its last good list."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from diagnoser.service.config_models import TargetGroup
from diagnoser.service.discovery.base import DiscoveryError, Found, Source
from diagnoser.service.discovery.file_sd import Files
from diagnoser.service.discovery.http_sd import HttpList
from diagnoser.service.discovery.static import Static

log = logging.getLogger("diagnoser.discovery")


class Watch:
    """One entry of `targets` and what its source says."""

    def __init__(self, group: TargetGroup, source: Source) -> None:
        self.group, self.source = group, source
        self.found: tuple[Found, ...] = ()
        self.problem = ""
        self._said_empty = False
        self._task: asyncio.Task[None] | None = None

    async def refresh(self) -> bool:
        """Asks once. True if the list has changed."""
        try:
            found = await self.source.refresh()
        except DiscoveryError as error:
            self._failed(str(error))
            return self._take(error.partial)
        except Exception as error:
            log.exception("source failed", extra={"source": self.source.name})
            self._failed(f"{self.source.name}: {error!r}")
            return False
        if self.problem:
            log.info("source works again", extra={"source": self.source.name})
        self.problem = ""
        if not found and not self._said_empty:  # right for what is scaled to zero, but perhaps the name is misspelt
            log.warning("source names no targets", extra={"source": self.source.name})
        self._said_empty = not found
        return self._take(found)

    def _take(self, found: Sequence[Found] | None) -> bool:
        if found is None or tuple(found) == self.found:
            return False
        self.found = tuple(found)
        return True

    def _failed(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("source failed: %s", problem, extra={"source": self.source.name, "kept": len(self.found)})
        self.problem = problem

    def start(self, changed: Callable[[], None]) -> None:
        """Refreshes from now on; calls `changed` when the list has."""
        if math.isfinite(self.source.every) and self._task is None:
            self._task = asyncio.create_task(self._run(changed))

    async def _run(self, changed: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self.source.every)
            if await self.refresh():
                changed()

    def stop(self) -> None:
        """No more refreshes."""
        if self._task is not None:
            self._task.cancel()


def source_of(group: TargetGroup, folder: Path, client: httpx.AsyncClient) -> Source:
    """The source of an entry of `targets`, but for prometheus, whose engines are not polled by us."""
    if group.file_sd is not None:
        return Files(group.file_sd, folder)
    if group.http_sd is not None:
        return HttpList(group.http_sd, client)
    if group.dns is not None:
        from diagnoser.service.discovery.dns import Records

        return Records(group.dns)
    return Static(group.static or [])
