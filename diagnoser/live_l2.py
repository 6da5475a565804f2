"""One live address of a host tier (L2), polled beside the engines it serves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import httpx

from diagnoser.errors import TargetError, UsageError
from diagnoser.l2pages import L2Page, assign, host_of, read_l2, split_spec
from diagnoser.live_engine import Engine, Plan
from diagnoser.model import Scrape
from diagnoser.pipeline import wanted_metrics
from diagnoser.sources.base import decode_page
from diagnoser.sources.exposition import PageParser
from diagnoser.sources.http import HttpSource, normalise_url


class LiveL2:
    """Fetches the page and keeps it; a failure is kept with its reason and disturbs nothing else."""

    def __init__(self, client: httpx.AsyncClient, spec: str, plan: Plan) -> None:
        engine, address = split_spec(spec)
        self.engine = normalise_url(engine).name if engine else ""
        began = time.time()
        self._clock: Callable[[], float] = lambda: began + (time.time() - began) * plan.speed
        self._parse = PageParser(wanted_metrics()).parse
        self.source = HttpSource(client, address, self._parse, timeout=plan.timeout, headers=plan.headers)
        self.page = L2Page(self.source.target.name, plan.window + 2 * plan.interval)

    async def poll(self) -> None:
        """One page."""
        try:
            body = await self.source.fetch()
        except TargetError as error:
            self.page.add(Scrape(self.source.target, self._clock(), error=str(error)))
            return
        self.page.add(read_l2(self.source.target, self._clock(), decode_page(body), self._parse))


def attach(engines: Sequence[Engine], tiers: Sequence[LiveL2]) -> None:
    """Gives every engine the pages of its host tiers. UsageError for an engine that is not among the targets."""
    names = {engine.name for engine in engines}
    twice = next((tier.page.name for tier in tiers if tier.page.name in names), None)
    if twice is not None:
        raise UsageError(f"--l2 {twice} is given as an engine, too: an engine's own page is read anyway.")
    served = assign(names, [(tier.engine, tier.page) for tier in tiers], host_of)
    for engine in engines:
        engine.history.l2_pages = tuple(served[engine.name])
