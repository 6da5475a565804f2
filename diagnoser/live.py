"""Samples live engines side by side, a page every interval from each."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import httpx

from diagnoser.live_engine import Engine, Plan
from diagnoser.live_l2 import LiveL2, attach
from diagnoser.model import Window
from diagnoser.sources.http import open_client

__all__ = ["Engine", "OnPoll", "Plan", "Sampler", "sampler"]

GIVE_UP_POLLS = 3
"""A one-time diagnosis stops early if so many polls of every target failed and none gave a page."""

OnPoll = Callable[[Engine], None]


class Sampler:
    """All targets of one command. Create with `sampler(...)`."""

    def __init__(self, engines: Sequence[Engine], plan: Plan, tiers: Sequence[LiveL2] = ()) -> None:
        self.engines = tuple(engines)
        self.tiers = tuple(tiers)
        self.plan = plan
        self.stop = asyncio.Event()

    async def run(self, on_poll: OnPoll = lambda engine: None, *, patient: bool = False, forever: bool = False) -> None:
        """Polls for one window, or until `stop` is set. Whatever stops it, all pages so far are kept.

        Ends early where no target gives a page, unless `patient` or `forever`.
        """
        polling = [
            asyncio.create_task(self._poll(engine, on_poll, patient or forever, forever)) for engine in self.engines
        ]
        beside = [asyncio.create_task(self._poll_tier(tier)) for tier in self.tiers]
        stopping = asyncio.create_task(self.stop.wait())
        everything = asyncio.ensure_future(asyncio.wait(polling, return_when=asyncio.FIRST_EXCEPTION))
        try:
            await asyncio.wait({everything, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped = self.stop.is_set() and not all(task.done() for task in polling)
            for task in (*polling, *beside, stopping):
                task.cancel()
            await asyncio.gather(*polling, *beside, stopping, everything, return_exceptions=True)
            await asyncio.gather(*(engine.settle(wait=not stopped) for engine in self.engines))
        for task in polling:
            if not task.cancelled():
                task.result()

    async def _poll(self, engine: Engine, on_poll: OnPoll, patient: bool, forever: bool) -> None:
        """On a fixed schedule: a slow answer skips the turns it took, and shifts none."""
        loop, step = asyncio.get_running_loop(), self.plan.interval / self.plan.speed
        start, turn = loop.time(), 0
        last = math.inf if forever else self.plan.window / self.plan.interval + 1e-6
        while turn <= last:
            await asyncio.sleep(start + turn * step - loop.time())
            await engine.poll()
            on_poll(engine)
            if not patient and self._hopeless():
                return
            turn = max(turn + 1, math.ceil((loop.time() - start) / step - 1e-6))

    async def _poll_tier(self, tier: LiveL2) -> None:
        """In step with the engines, until they are done. A slow or dead tier delays none of them."""
        loop, step = asyncio.get_running_loop(), self.plan.interval / self.plan.speed
        start, turn = loop.time(), 0
        while True:
            await asyncio.sleep(start + turn * step - loop.time())
            await tier.poll()
            turn = max(turn + 1, math.ceil((loop.time() - start) / step - 1e-6))

    def _hopeless(self) -> bool:
        return all(engine.pages == 0 and engine.polls >= GIVE_UP_POLLS for engine in self.engines)

    def windows(self) -> tuple[Window, ...]:
        """What was sampled, as far back as the plan's window: one window an engine rank, all with the same end."""
        ends = [engine.last.at for engine in self.engines if engine.last is not None]
        if not ends:
            return ()
        end = max(ends)
        begin = min(engine.first_at for engine in self.engines if engine.first_at is not None)
        # Answers take a moment, so the first and the last of 31 pages lie a little more than 30 s apart.
        seconds = min(round(end - begin, 2), self.plan.window + self.plan.interval / 2)
        return tuple(w for engine in self.engines for w in engine.history.windows(end, max(seconds, 0.01)))


@asynccontextmanager
async def sampler(addresses: Iterable[str], plan: Plan) -> AsyncIterator[Sampler]:
    """A sampler with one client a target; a target given twice counts once. UsageError for what is no address."""
    clients: list[httpx.AsyncClient] = []
    engines: dict[str, Engine] = {}
    try:
        for address in addresses:
            client = open_client()
            clients.append(client)
            engine = Engine(client, address, plan)
            engines.setdefault(engine.name, engine)
        tiers: dict[str, LiveL2] = {}
        for spec in plan.l2:
            clients.append(open_client())
            tiers.setdefault(spec, LiveL2(clients[-1], spec, plan))
        attach(tuple(engines.values()), tuple(tiers.values()))
        yield Sampler(tuple(engines.values()), plan, tuple(tiers.values()))
    finally:
        await asyncio.gather(*(client.aclose() for client in clients))
