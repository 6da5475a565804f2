"""One live engine: its pages as they come, and its configuration once per start."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from diagnoser.engines import adapters
from diagnoser.engines.base import EngineAdapter
from diagnoser.errors import TargetError
from diagnoser.model import Fact, Scrape
from diagnoser.pipeline import History, wanted_metrics
from diagnoser.sources.exposition import PageParser
from diagnoser.sources.http import HttpSource

START = "process_start_time_seconds"
"""What every Prometheus client library exports; several processes behind one page export none."""
QUERIES_AT_ONCE = 2
"""Configuration is read beside the pages; an engine that hangs must not keep connections from them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to sample. `facts` of the user override what labels and the engine say.

    `speed` is for an engine that plays a recording faster than it was made: the clock of its pages runs as fast.
    """

    window: float = 30.0
    interval: float = 1.0
    timeout: float = 5.0
    headers: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Fact] = field(default_factory=dict)
    speed: float = 1.0
    l2: tuple[str, ...] = ()
    """Addresses of host tiers, each "URL" or "ENGINE=URL"."""


class Engine:
    """One live target: its pages so far and what is known of its configuration."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        address: str,
        plan: Plan,
        source: HttpSource | None = None,
        history: History | None = None,
    ) -> None:
        """`source` and `history` stand in for those that the plan would make."""
        began = time.time()
        self._clock: Callable[[], float] = lambda: began + (time.time() - began) * plan.speed
        parse = PageParser(wanted_metrics()).parse
        self.source = source or HttpSource(client, address, parse, timeout=plan.timeout, headers=plan.headers)
        self.name = self.source.target.name
        self.history = history or History(self.name, plan.window + 2 * plan.interval, plan.facts)
        self.polls = self.pages = 0
        self.last: Scrape | None = None
        self.body: bytes | None = None
        """The newest page as served, None if the newest poll failed."""
        self.first_at: float | None = None
        self._given = plan.facts
        self._started: float | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: list[Scrape] = []

    async def poll(self) -> Scrape:
        """One page. It is kept at once, or, while the configuration is being read, as soon as that is known."""
        return self.note(await self.fetch())

    def note(self, scrape: Scrape) -> Scrape:
        """Keeps one poll, also one that was made elsewhere."""
        self._note_start(scrape)
        self.polls += 1
        self.pages += scrape.error is None
        self.first_at = self.first_at or scrape.at
        self.last = scrape
        self._waiting.append(scrape)
        self.keep()
        return scrape

    async def fetch(self) -> Scrape:
        """One page or one failure, not kept yet: `note` does that."""
        try:
            self.body = await self.source.fetch()
        except TargetError as error:
            self.body = None
            return Scrape(self.source.target, self._clock(), error=str(error))
        return self.source.read(self._clock(), self.body)

    def keep(self) -> None:
        """Hand what was fetched to the history, unless the configuration is still on its way."""
        if self._reading is None or self._reading.done():
            for scrape in self._waiting:
                self._add(scrape)
            self._waiting.clear()

    def _add(self, scrape: Scrape) -> None:
        """A page that an adapter stumbles over is a failed poll of this target; the others go on."""
        try:
            self.history.add(scrape)
        except Exception as error:
            reason = f"{self.name} sent a page that could not be understood ({error!r}): please report it as a bug."
            self.history.add(Scrape(scrape.target, scrape.at, error=reason))

    async def settle(self, wait: bool = True) -> None:
        """Finish reading the configuration, or give it up, and keep all pages."""
        if self._reading is not None:
            if not wait:
                self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        self.keep()

    def _note_start(self, scrape: Scrape) -> None:
        """Reads the configuration when the engine is first seen, and again after it restarted or did not answer."""
        adapter = _adapter(scrape)
        if adapter is None or (self._reading is not None and not self._reading.done()):
            return
        started = next((sample.value for sample in scrape.samples if sample.name == START), None)
        back = self.last is not None and self.last.error is not None
        if self._reading is None or back or started != self._started:
            self._started = started
            self._reading = asyncio.create_task(self._read_facts(adapter))

    async def _read_facts(self, adapter: EngineAdapter) -> None:
        gate = asyncio.Semaphore(QUERIES_AT_ONCE)

        async def ask(path: str) -> object | None:
            async with gate:
                return await self.source.get_json(path)

        answers = await asyncio.gather(*(ask(query.path) for query in adapter.fact_queries))
        found: dict[str, Fact] = {}
        for query, answer in zip(adapter.fact_queries, answers, strict=True):
            if answer is not None:
                for fact in query.read(answer, f"GET {query.path.partition('?')[0]}"):
                    found.setdefault(fact.name, fact)
        self.history.facts = {**found, **self._given}


def _adapter(scrape: Scrape) -> EngineAdapter | None:
    """The engine family of a page."""
    for adapter in adapters():
        if any(sample.name.startswith(adapter.prefixes) for sample in scrape.samples):
            return adapter
    return None
