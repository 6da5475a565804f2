"""Pages of host tiers (`l2:`) of the targets, polled beside them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import httpx

from diagnoser.errors import UsageError
from diagnoser.live_engine import Plan
from diagnoser.live_l2 import LiveL2, attach
from diagnoser.service.config_models import TargetGroup
from diagnoser.service.polled import Polled

log = logging.getLogger("diagnoser.poller")


class Tiers:
    """The host tiers of one entry of `targets`."""

    def __init__(self, group: TargetGroup, client: httpx.AsyncClient, keep: float) -> None:
        headers = {name: value.get_secret_value() for name, value in group.headers.items()}
        self._plan = Plan(keep, group.interval, group.timeout, headers, l2=tuple(group.l2))
        self._tiers = [LiveL2(client, spec, self._plan) for spec in group.l2]
        self._tasks = [asyncio.create_task(self._run(tier)) for tier in self._tiers]

    def attach(self, polled: Iterable[Polled]) -> None:
        """Gives the engines of the entry their pages, now that they may have changed."""
        engines = [one.engine for one in polled]
        names = {engine.name for engine in engines}
        known = [tier for tier in self._tiers if tier.engine in ("", *names)]
        for tier in self._tiers:
            if tier not in known:
                log.warning("l2 of %s, which is not among the targets: %s", tier.engine, tier.page.name)
        try:
            attach(engines, known)
        except UsageError as error:
            log.warning("l2 is not used: %s", error)

    async def _run(self, tier: LiveL2) -> None:
        while True:
            try:
                await tier.poll()
            except Exception:
                log.exception("poll of l2 failed", extra={"target": tier.page.name})
            await asyncio.sleep(self._plan.interval)

    async def stop(self) -> None:
        """Ends polling."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
