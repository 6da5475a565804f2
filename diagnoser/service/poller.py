"""All targets that we poll ourselves: who they are now, and what they have shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

import aiohttp
import httpx

from diagnoser.model import Window
from diagnoser.service.config_models import Config, TargetGroup
from diagnoser.service.discovery.base import DiscoveryError, address_of, public_labels
from diagnoser.service.discovery.watch import Watch
from diagnoser.service.lag import Lag
from diagnoser.service.polled import Polled, Spec, Tools
from diagnoser.service.states import TargetState
from diagnoser.service.stats import Stats
from diagnoser.service.tiers import Tiers

log = logging.getLogger("diagnoser.poller")
KNOCKS_AT_ONCE = 64
FIRST_POLLS = 3
"""A target takes part in evaluations from its third poll on: two pages tell nothing."""


def specs_of(watches: Sequence[Watch]) -> dict[str, Spec]:
    """What the sources say, by name. The first of a name wins; what is no address is told and left out."""
    found: dict[str, Spec] = {}
    for watch in watches:
        for one in watch.found:
            try:
                address = address_of(one, watch.group)
            except DiscoveryError as error:
                log.warning("not a target: %s", error, extra={"source": watch.source.name})
                continue
            labels = public_labels(one, watch.group)
            spec = Spec(address.name, address.metrics_url, watch.source.name, watch.group, labels)
            if found.setdefault(address.name, spec).group is not watch.group:
                log.warning("target is given twice, the first entry counts", extra={"target": address.name})
    return found


class Poller:
    """Polls the targets given by `use`."""

    def __init__(self, config: Config, stats: Stats, session: aiohttp.ClientSession, client: httpx.AsyncClient) -> None:
        self.stats, self.lag = stats, Lag()
        self._tools = _tools(config, stats, session, client, self.lag)
        self.lag.start()
        self.targets: dict[str, Polled] = {}
        self._tiers: list[tuple[TargetGroup, Tiers]] = []
        self._changing = asyncio.Lock()

    async def use(self, watches: Sequence[Watch], config: Config) -> set[str]:
        """Polls these from now on. A target that stays keeps its pages. Returns the names of those that are gone."""
        async with self._changing:
            old = self._tools
            same_tools = (old.window, old.keep, old.at_once) == (config.window, config.keep, config.polls_at_once)
            self._tools = old if same_tools else _tools(config, self.stats, old.session, old.client, self.lag)
            wanted = specs_of(watches)
            gone = set(self.targets) - set(wanted)
            await asyncio.gather(*(self.targets.pop(name).stop() for name in gone))
            for name, spec in wanted.items():
                await self._use_one(name, spec, same_tools)
            for name in gone:
                self.stats.targets.pop(name, None)
            await self._use_tiers([watch.group for watch in watches])
            return gone

    async def _use_one(self, name: str, spec: Spec, same_tools: bool) -> None:
        old = self.targets.get(name)
        if old is not None and same_tools and (old.spec.url, old.spec.group) == (spec.url, spec.group):
            old.spec = spec  # labels may have changed
            return
        if old is not None:
            await old.stop()
        history = old.engine.history if old is not None and old.spec.url == spec.url else None
        self.targets[name] = Polled(spec, self._tools, history)
        if old is not None and history is not None:
            self.targets[name].take_over(old)
        self.targets[name].start()

    async def _use_tiers(self, groups: Sequence[TargetGroup]) -> None:
        wanted = [group for group in groups if group.l2]
        kept = [(group, tiers) for group, tiers in self._tiers if group in wanted]
        await asyncio.gather(*(tiers.stop() for group, tiers in self._tiers if group not in wanted))
        have = [group for group, _ in kept]
        fresh = [group for group in wanted if group not in have]
        tools = self._tools
        kept += [(group, Tiers(group, tools.client, max(tools.keep, tools.window))) for group in fresh]
        self._tiers = kept
        for one in self.targets.values():
            if not one.spec.group.l2:
                one.engine.history.l2_pages = ()
        for group, tiers in kept:
            tiers.attach(one for one in self.targets.values() if one.spec.group == group)

    def windows(self, end: float, seconds: float) -> list[Window]:
        """The last `seconds` of every target that was polled often enough."""
        return [window for one in self.targets.values() for window in windows_of(one, end, seconds)]

    def states(self) -> list[TargetState]:
        """Every target as it is now."""
        return [one.state for one in self.targets.values()]

    async def stop(self) -> None:
        """Ends all polling."""
        self.lag.stop()
        stopping: Iterable[Polled | Tiers] = [*self.targets.values(), *(tiers for _, tiers in self._tiers)]
        await asyncio.gather(*(one.stop() for one in stopping))


def windows_of(one: Polled, end: float, seconds: float) -> tuple[Window, ...]:
    """The windows of one target; none before it was polled often enough."""
    engine = one.engine
    if engine.first_at is None or not enough(one, end, seconds):
        return ()
    seen = end - engine.first_at
    # Answers take a moment, so the first and the last of 31 pages lie a little more than 30 s apart.
    return engine.history.windows(end, max(0.01, min(seen, seconds + one.spec.group.interval / 2)))


def enough(one: Polled, end: float, seconds: float) -> bool:
    """Was it polled often enough for a verdict?"""
    first = one.engine.first_at
    return first is not None and (one.engine.polls >= FIRST_POLLS or end - first >= seconds)


def _tools(config: Config, stats: Stats, session: aiohttp.ClientSession, client: httpx.AsyncClient, lag: Lag) -> Tools:
    gate, knocking = asyncio.Semaphore(config.polls_at_once), asyncio.Semaphore(KNOCKS_AT_ONCE)
    return Tools(session, client, stats, gate, knocking, config.window, config.keep, config.polls_at_once, lag)
