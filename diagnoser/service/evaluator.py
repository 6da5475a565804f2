"""Windows to verdicts, round after round. A window that cannot be judged costs its own verdict only."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from diagnoser.model import Diagnosis, Window
from diagnoser.pipeline import diagnose
from diagnoser.rulebook.rules import Rulebook
from diagnoser.service.stats import Stats

log = logging.getLogger("diagnoser.evaluator")
SAY_SLOW_SECONDS = 300.0


def judge(windows: Sequence[Window], book: Rulebook) -> tuple[list[Diagnosis], list[str]]:
    """A diagnosis a window, and the names of the targets that gave none because of a fault of ours.

    All together, so that ranks and replicas are compared; if that fails, target by target.
    """
    try:
        return list(diagnose(windows, book)), []
    except Exception:
        log.exception("evaluation failed, going target by target")
    found: list[Diagnosis] = []
    failed = []
    for name in dict.fromkeys(window.engine.target for window in windows):
        try:
            found += diagnose([window for window in windows if window.engine.target == name], book)
        except Exception:
            failed.append(name)
    return found, failed


class Rounds:
    """One round every `every()` seconds, but never more than half of the time: polls and answers need the other."""

    def __init__(self, once: Callable[[float], Awaitable[object]], every: Callable[[], float], stats: Stats) -> None:
        self._once, self._every, self._stats = once, every, stats
        self._said_slow = -SAY_SLOW_SECONDS

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._once(time.time())
            except Exception:  # the next round is another chance
                self._stats.evaluation_failures += 1
                log.exception("round of evaluation failed")
            taken, every = loop.time() - began, self._every()
            if taken > every / 2 and self._stats.evaluations > 1:
                self._say_slow(taken)
            await asyncio.sleep(max(taken, every - taken))

    def _say_slow(self, taken: float) -> None:
        """Once in a while: it will not be the last round that is slow."""
        now = time.monotonic()
        if now - self._said_slow > SAY_SLOW_SECONDS:
            self._said_slow = now
            log.warning("an evaluation took %.1f s: raise evaluate_every, or poll less often", taken)
