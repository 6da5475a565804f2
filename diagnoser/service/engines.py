"""Every engine the service knows, however it is read: polled by us, or asked of a metrics server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import httpx

from diagnoser.model import Window
from diagnoser.service.config_models import Config
from diagnoser.service.discovery.watch import Watch, source_of
from diagnoser.service.fetch import open_session
from diagnoser.service.poller import Poller, enough
from diagnoser.service.prometheus_source import ServedEngines
from diagnoser.service.states import SourceState, TargetState
from diagnoser.service.stats import Stats

log = logging.getLogger("diagnoser.discovery")


class Engines:
    """Sources, targets and their windows. `open`, then `use` at every reload."""

    _session: aiohttp.ClientSession
    _client: httpx.AsyncClient
    _poller: Poller

    def __init__(self, folder: Path, stats: Stats) -> None:
        self._folder, self._stats = folder, stats
        self._config = Config()
        self._watches: list[Watch] = []
        self._served: list[ServedEngines] = []
        self._changed: asyncio.Task[None] | None = None
        self._again = self._opened = False

    async def open(self, config: Config) -> None:
        """Asks every source once and begins to poll."""
        self._session = open_session()
        limits = httpx.Limits(max_connections=256, max_keepalive_connections=0)
        self._client = httpx.AsyncClient(limits=limits, trust_env=False)
        self._poller = Poller(config, self._stats, self._session, self._client)
        self._opened = True
        await self.use(config)

    async def use(self, config: Config) -> None:
        """These sources from now on. An entry that did not change keeps its list, a target that stays its pages."""
        self._config = config
        old = list(self._watches)
        watches, fresh = [], []
        for group in config.targets:
            if group.kind == "prometheus":
                continue
            same = next((watch for watch in old if watch.group == group), None)
            if same is not None:
                old.remove(same)
            watch = same or Watch(group, source_of(group, self._folder, self._client))
            watches.append(watch)
            if same is None:
                fresh.append(watch)
        await asyncio.gather(*(watch.refresh() for watch in fresh))
        for watch in old:
            watch.stop()
        self._watches = watches
        await self._poller.use(watches, config)
        for watch in watches:
            watch.start(self._list_changed)
        await self._use_served(config)

    async def _use_served(self, config: Config) -> None:
        old = list(self._served)
        self._served = []
        for group in config.targets:
            if group.prometheus is None:
                continue
            same = next((one for one in old if one.group == group), None)
            if same is not None:
                old.remove(same)
            self._served.append(same or ServedEngines(group, group.prometheus))
            if same is None:
                self._served[-1].start()
        await asyncio.gather(*(one.stop() for one in old))

    def _list_changed(self) -> None:
        """Some source has another list. Changes that come while one is being taken over are taken over after it."""
        self._again = True
        if self._changed is None or self._changed.done():
            self._changed = asyncio.create_task(self._take_lists())

    async def _take_lists(self) -> None:
        while self._again:
            self._again = False
            try:
                gone = await self._poller.use(self._watches, self._config)
                log.info("targets changed", extra={"targets": len(self._poller.targets), "gone": len(gone)})
            except Exception:
                log.exception("a new list of targets was not taken over")

    async def close(self) -> None:
        """Ends polling and asking."""
        for watch in self._watches:
            watch.stop()
        if not self._opened:
            return
        if self._changed is not None:
            self._changed.cancel()
        await self._poller.stop()
        await asyncio.gather(*(one.stop() for one in self._served))
        await self._session.close()
        await self._client.aclose()

    # ---------------------------------------------------------------- what they show

    def windows(self, end: float, seconds: float) -> list[Window]:
        """The newest window of every engine rank. A target that we poll hides one of the same name on a server."""
        found = self._poller.windows(end, seconds)
        names = set(self._poller.targets)
        for one in self._served:
            found += [window for window in one.windows if window.engine.target not in names]
            names |= {window.engine.target for window in one.windows}
        return found

    async def windows_at(self, target: str, start: float, end: float) -> list[Window]:
        """What is kept of one target in that time, or what its server has. Raises DiagnoserError."""
        polled = self._poller.targets.get(target)
        if polled is not None:
            begin = max(start, polled.engine.first_at or end)
            return list(polled.engine.history.windows(end, end - begin)) if end > begin else []
        for one in self._served:
            if any(window.engine.target == target for window in one.windows):
                found = await one.ask(end, end - start, target)
                return [window for window in found.windows if window.engine.target == target]
        return []

    def waiting(self) -> set[str]:
        """Targets that are polled but have too few pages yet: what the board says of them stands."""
        now, seconds = time.time(), self._config.window
        return {name for name, one in self._poller.targets.items() if not enough(one, now, seconds)}

    def targets(self) -> tuple[TargetState, ...]:
        """Every target, by name."""
        found = {state.name: state for one in self._served for state in one.states()}
        found |= {state.name: state for state in self._poller.states()}
        return tuple(found[name] for name in sorted(found))

    def sources(self) -> tuple[SourceState, ...]:
        """Every source, in the order of the configuration."""
        polled = [
            SourceState(watch.source.name, watch.group.kind, len(watch.found), watch.problem) for watch in self._watches
        ]
        return (*polled, *(one.state for one in self._served))

    def labels(self, target: str) -> Mapping[str, str]:
        """Labels of a target; {} if there are none."""
        polled = self._poller.targets.get(target)
        if polled is not None:
            return polled.spec.labels
        return next((one.labels[target] for one in self._served if target in one.labels), {})
