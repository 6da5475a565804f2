"""Messages leave here at least once: an item is done only when its receiver has accepted it.

Items lie in the history file; an attempt that may have arrived is repeated under the same id with a higher number.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from diagnoser.service.history import History
from diagnoser.service.notify.base import Notifier
from diagnoser.service.notify.changes import SILENCED
from diagnoser.service.notify.lane import Lane
from diagnoser.service.notify.pace import BACKOFF, Backoff
from diagnoser.service.records import OutboxItem
from diagnoser.service.store import outbox as table

GRACE_SECONDS = 2.0
"""An attempt under way gets so long to end when the service stops or its receivers change."""
_ALL = 100_000


class Outbox:
    """`depth` is how many items are on their way, `dead` how many were given up; both for metrics."""

    def __init__(
        self,
        history: History,
        notifiers: Mapping[str, Notifier],
        clock: Callable[[], float] = time.time,
        backoff: Backoff = BACKOFF,
    ) -> None:
        self.depth = self.dead = 0
        self._history, self._clock, self._backoff = history, clock, backoff
        self._lanes = {name: Lane(one, history, clock, backoff) for name, one in notifiers.items()}
        self._changed, self._running = asyncio.Event(), False
        self._retired: list[Notifier] = []

    async def add(self, items: Sequence[OutboxItem]) -> None:
        """Kept on disk when it returns. An id that was added before is no second message."""
        await self._history.outbox_add(items)
        self.wake({item.receiver for item in items})

    def wake(self, receivers: set[str]) -> None:
        """Something for them was written to the history."""
        for name in receivers & self._lanes.keys():
            self._lanes[name].wake()

    def offer(self, item: OutboxItem) -> None:
        """Sends it once, soon, without keeping it; a newer one for the same receiver takes its place."""
        if item.receiver in self._lanes:
            self._lanes[item.receiver].offer(item)

    async def use(self, notifiers: Mapping[str, Notifier]) -> None:
        """Other receivers, after a reload. What waits for one that is gone is given up, with that reason."""
        self._retired += [lane.notifier for lane in self._lanes.values()]
        old, self._lanes = self._lanes, {}
        for name, one in notifiers.items():
            self._lanes[name] = Lane(one, self._history, self._clock, self._backoff)
            if name in old:
                self._lanes[name].succeed(old[name])
        self._changed.set()
        if not self._running:
            await self._close_retired()
            await self._give_up_orphans()

    async def run(self) -> None:
        """Delivers until cancelled."""
        self._running = True
        try:
            while True:
                self._changed.clear()
                await self._give_up_orphans()
                await self._run_lanes()
        finally:
            self._running = False

    async def _run_lanes(self) -> None:
        """Until the receivers change. What is being sent may end, so that it is not sent twice."""
        lanes = tuple(self._lanes.values())
        tasks = [asyncio.create_task(lane.run()) for lane in lanes]
        counting = asyncio.create_task(self._count_for_ever())
        try:
            await self._changed.wait()
        finally:
            for lane in lanes:
                lane.stop()
            if tasks:
                await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            for task in (*tasks, counting):
                task.cancel()
            await asyncio.gather(*tasks, counting, return_exceptions=True)
            await self._close_retired()

    async def _close_retired(self) -> None:
        while self._retired:
            await self._retired.pop().close()

    async def drain(self, deadline_seconds: float) -> None:
        """Delivers what can be delivered within the deadline; the rest stays on disk for the next start."""
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline_seconds):
                await asyncio.gather(*(lane.flush() for lane in self._lanes.values()))
        await self.recount()

    async def close(self) -> None:
        """Ends the receivers' connections."""
        await asyncio.gather(*(lane.notifier.close() for lane in self._lanes.values()))

    async def _count_for_ever(self) -> None:
        while True:
            await self.recount()
            await asyncio.sleep(1.0)

    async def recount(self) -> None:
        """Brings `depth` and `dead` up to date."""
        counts = await self._history.outbox_counts()
        self.depth, self.dead = counts.get("pending", 0), counts.get("dead", 0)

    async def _give_up_orphans(self) -> None:
        for item in await self._history.outbox_list("pending", _ALL):
            if item.receiver not in self._lanes:
                reason = f"no receiver is named {item.receiver} in the configuration any more"
                await self._history.outbox_update(
                    item.id, state="dead", attempts=item.attempts, next_at=item.next_at, error=reason
                )

    # ---------------------------------------------------------------- for people

    async def pending_items(self, limit: int = 100) -> list[OutboxItem]:
        """What is on its way, the newest first."""
        return await self._history.outbox_list("pending", limit)

    async def dead_items(self, limit: int = 100) -> list[OutboxItem]:
        """What was given up, with the reason, the newest first."""
        return await self._history.outbox_list("dead", limit)

    async def silenced_items(self, limit: int = 100) -> list[OutboxItem]:
        """What silences kept from being sent, the newest first; `error` names the silence."""
        return await self._history.transact(lambda db: table.of_kind(db, SILENCED, limit))

    async def requeue(self, item_id: str) -> bool:
        """Tries a dead item again, under its old id. False if there is none; HistoryError if it cannot be written."""
        now = self._clock()
        sql = "UPDATE outbox SET state = 'pending', next_at = ? WHERE id = ? AND state = 'dead' RETURNING receiver"
        found = await self._history.transact(lambda db: db.execute(sql, (now, item_id)).fetchall())
        self.wake({receiver for (receiver,) in found})
        return bool(found)

    def problems(self) -> tuple[str, ...]:
        """What to alarm about: receivers that fail, messages that were given up."""
        failing = [f"the receiver {name} fails: {lane.problem}" for name, lane in self._lanes.items() if lane.problem]
        one = "1 message was given up: see the outbox's dead items."
        more = f"{self.dead} messages were given up: see the outbox's dead items."
        return (*failing, *([one if self.dead == 1 else more] if self.dead else ()))
