"""A `prometheus:` source: engines that a metrics server scrapes, asked for again and again.

Reading the answers costs tens of milliseconds of CPU an engine, so it happens in a thread with an event loop of its
own: the polls of other targets go on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from diagnoser.errors import DiagnoserError
from diagnoser.model import Fact, Window
from diagnoser.served import Served, Wish, served
from diagnoser.service.config_base import secret_of
from diagnoser.service.config_models import PrometheusSource, TargetGroup, typed_facts
from diagnoser.service.states import SourceState, TargetState
from diagnoser.sources.http import public_url
from diagnoser.sources.prometheus.access import TENANT_HEADER, Access, open_client
from diagnoser.sources.prometheus.api import Server

log = logging.getLogger("diagnoser.prometheus")
PATIENCE = 3
"""So many failures in a row, and the last windows are not shown as today's any more."""


class ServedEngines:
    """One entry of `targets` with `prometheus:`."""

    def __init__(self, group: TargetGroup, settings: PrometheusSource) -> None:
        self.group, self._settings = group, settings
        self.name = f"prometheus {public_url(settings.url)}"
        self._facts: Mapping[str, Fact] = typed_facts(group.facts)
        self.windows: tuple[Window, ...] = ()
        self.labels: dict[str, Mapping[str, str]] = {}
        self.problem = ""
        self._failures = 0
        self._asked_at: float | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Asks from now on."""
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Asks no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await self.refresh()
            await asyncio.sleep(max(0.0, began + self._settings.interval - loop.time()))

    async def refresh(self) -> None:
        """Asks once. A server that fails keeps the last windows for a while, then its engines are unreachable."""
        at = time.time() - self._settings.delay
        try:
            found = await self.ask(at, self._settings.window)
        except Exception as error:
            if not isinstance(error, DiagnoserError):
                log.exception("source failed", extra={"source": self.name})
            self._failed(at, str(error) or repr(error))
            return
        if self.problem:
            log.info("source works again", extra={"source": self.name})
        self.problem = "; ".join(dict.fromkeys(found.failed.values()))
        self._failures, self._asked_at = 0, at
        self.labels = {name: {**labels, **self.group.labels} for name, labels in found.labels.items()}
        kept = tuple(window for window in self.windows if window.engine.target in found.failed)
        self.windows = tuple(found.windows) + tuple(w for w in kept if w.end > at - 4 * self._settings.interval)

    def _failed(self, at: float, problem: str) -> None:
        if problem != self.problem:
            log.warning("source failed: %s", problem, extra={"source": self.name})
        self.problem = problem
        self._failures += 1
        if self._failures >= PATIENCE:
            failure = ((at, problem),)
            self.windows = tuple(
                Window(window.engine, at, self._settings.window, (), failure, window.facts) for window in self.windows
            )

    async def ask(self, at: float, seconds: float, target: str = "") -> Served:
        """What the server has of that time, of one target if given. Raises DiagnoserError."""
        match = self._settings.match
        instance = self.labels.get(target, {}).get("instance", "")
        if target and instance:
            match = ",".join(part for part in (match, f"instance={_quoted(instance)}") if part)
        wish = Wish(at, seconds, match, self._facts)
        return await asyncio.to_thread(asyncio.run, self._ask(wish))

    async def _ask(self, wish: Wish) -> Served:
        settings = self._settings
        headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        if settings.tenant:
            headers[TENANT_HEADER] = settings.tenant
        if settings.bearer_file is not None:
            headers["Authorization"] = f"Bearer {secret_of(settings.bearer_file)}"
        access = Access(settings.url, headers, settings.ca, settings.cert, settings.key)
        async with open_client(access) as client:
            return await served(Server(client, settings.url, timeout=settings.timeout), wish)

    def states(self) -> list[TargetState]:
        """The engines that the server knows."""
        names = list(dict.fromkeys(window.engine.target for window in self.windows))
        url, step = public_url(self._settings.url), self._settings.interval
        return [
            TargetState(
                name, url, self.name, not self.problem, self.problem, self._asked_at, step, self.labels.get(name, {})
            )
            for name in names
        ]

    @property
    def state(self) -> SourceState:
        """The source as it is now."""
        return SourceState(self.name, "prometheus", len(self.states()), self.problem)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
