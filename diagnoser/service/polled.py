"""One target that is polled: its schedule, its pages, and whether it lives.

A dead target is not asked less often, it is asked more cheaply: after three failures a turn is one TCP connection, and
the page follows at once when that is accepted. So a target that returns is seen within one interval, a thousand dead
ones cost next to nothing, and they wait in a queue of their own where they delay nobody who lives.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import aiohttp
import httpx

from diagnoser.live_engine import Engine, Plan
from diagnoser.model import Scrape
from diagnoser.pipeline import History, Thinning, wanted_metrics
from diagnoser.service.config_base import secret_of
from diagnoser.service.config_models import TargetGroup, typed_facts
from diagnoser.service.fetch import AioSource
from diagnoser.service.lag import LOOK_SECONDS, Lag
from diagnoser.service.states import TargetState
from diagnoser.service.stats import Stats
from diagnoser.sources.exposition import PageParser

log = logging.getLogger("diagnoser.poller")
DEAD_AFTER = 3
"""Failures in a row after which a target is only knocked at."""
SPARSE_SECONDS = 5.0
"""Pages older than the window are kept at this distance."""


@dataclass(frozen=True, slots=True)
class Spec:
    """What is polled and how. `source` tells where the address came from."""

    name: str
    url: str
    source: str
    group: TargetGroup
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tools:
    """What all targets share. `gate` and `knocking` bound the polls at once, of the living and of the dead."""

    session: aiohttp.ClientSession
    client: httpx.AsyncClient
    stats: Stats
    gate: asyncio.Semaphore
    knocking: asyncio.Semaphore
    window: float
    keep: float
    at_once: int
    lag: Lag


class Polled:
    """A target and the task that polls it."""

    def __init__(self, spec: Spec, tools: Tools, history: History | None = None) -> None:
        self.spec, self._tools, self._stats = spec, tools, tools.stats
        group = spec.group
        parse = PageParser(wanted_metrics()).parse
        self.source = AioSource(
            tools.session,
            tools.client,
            spec.url,
            parse,
            timeout=group.timeout,
            headers=self._headers,
            max_bytes=group.max_page,
            name=spec.name,
        )
        plan = Plan(tools.window, group.interval, group.timeout, facts=typed_facts(group.facts))
        thinning = Thinning(tools.window + 2 * group.interval, SPARSE_SECONDS)
        keep = max(tools.keep, tools.window) + 2 * group.interval
        history = history or History(spec.name, keep, plan.facts, thinning)
        history.keep_seconds, history.thinning = keep, thinning
        self.engine = Engine(tools.client, spec.url, plan, self.source, history)
        self.failures = 0
        """In a row."""
        self.last_error = ""
        self._task: asyncio.Task[None] | None = None

    def _headers(self) -> dict[str, str]:
        group = self.spec.group
        found = {name: value.get_secret_value() for name, value in group.headers.items()}
        if group.bearer_file is not None:
            found["Authorization"] = f"Bearer {secret_of(group.bearer_file)}"
        return found

    def take_over(self, old: Polled) -> None:
        """Goes on where the same target was polled with other settings."""
        self.failures, self.last_error = old.failures, old.last_error
        mine, theirs = self.engine, old.engine
        mine.polls, mine.pages, mine.first_at, mine.last = theirs.polls, theirs.pages, theirs.first_at, theirs.last

    def start(self) -> None:
        """Polls from now on."""
        self._task = asyncio.create_task(self._run(), name=f"poll {self.spec.name}")

    async def stop(self) -> None:
        """Ends polling; what was fetched is kept."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.engine.settle(wait=False)

    async def _run(self) -> None:
        """On a fixed schedule: a slow answer skips the turns it took, and shifts none."""
        loop, step = asyncio.get_running_loop(), self.spec.group.interval
        start, turn = loop.time() + offset(self.spec.name, step, loop.time()), 0
        while True:
            await asyncio.sleep(start + turn * step - loop.time())
            began = loop.time()
            try:
                busy = await self._turn()
            except Exception:  # whatever it is, this target is polled again and the others never notice
                log.exception("poll failed", extra={"target": self.spec.name})
                busy = loop.time() - began
            following = max(turn + 1, math.ceil((loop.time() - start) / step - 1e-6))
            if following > turn + 1:
                self._stats.skipped(self.spec.name, following - turn - 1, by_us=busy < step)
            turn = following

    async def _turn(self) -> float:
        """One poll, or one knock. Returns the seconds that the target took."""
        loop = asyncio.get_running_loop()
        dead = self.failures >= DEAD_AFTER
        async with self._tools.knocking if dead else self._tools.gate:
            began = loop.time()
            if dead and not await self.source.accepts(min(self.spec.group.interval, self.spec.group.timeout / 2)):
                self._stats.target(self.spec.name).probes += 1
                scrape = self.engine.note(Scrape(self.source.target, time.time(), error=self.last_error))
            else:
                scrape = await self.engine.fetch()
                self.engine.body = None
                if scrape.error is not None:
                    await asyncio.sleep(LOOK_SECONDS)  # so that a stall that ends now is known
                    if self._tools.lag.since(began) > self.spec.group.timeout / 4:
                        self._stats.skipped(self.spec.name, 1, by_us=True)
                        return 0.0  # the service was stalled: that says nothing of the target
                self.engine.note(scrape)
            seconds = loop.time() - began
        self._stats.polled(self.spec.name, seconds, scrape.error is not None, scrape.at)
        self._note(scrape)
        return seconds

    def _note(self, scrape: Scrape) -> None:
        name = self.spec.name
        if scrape.error is None:
            if self.failures:
                log.info("target is back", extra={"target": name, "failures": self.failures})
            self.failures, self.last_error = 0, ""
            return
        self.failures += 1
        if self.failures == 1:
            log.warning("target fails: %s", scrape.error, extra={"target": name})
        elif self.failures == DEAD_AFTER:
            log.warning("target is dead, knocking every interval: %s", scrape.error, extra={"target": name})
        self.last_error = scrape.error

    @property
    def state(self) -> TargetState:
        """The target as it is now."""
        healthy = None if self.engine.last is None else not self.failures
        at = None if self.engine.last is None else self.engine.last.at
        spec = self.spec
        url, step = self.source.target.url, spec.group.interval
        return TargetState(spec.name, url, spec.source, healthy, self.last_error, at, step, spec.labels)


def offset(name: str, step: float, now: float) -> float:
    """Seconds until the target's next turn. Its place in the interval follows from its name, also after a restart."""
    share = int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) / 2**64
    return (share * step - now) % step
