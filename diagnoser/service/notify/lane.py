"""The way to one receiver: its items in order, one at a time, with back-off, within its rate.

Every receiver has a lane of its own, so that one that hangs delays no other.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from diagnoser.service.history import History, HistoryError
from diagnoser.service.notify.base import Notifier, Outcome
from diagnoser.service.notify.digest import digest_of, store, subjects
from diagnoser.service.notify.pace import BACKOFF, Backoff, Bucket
from diagnoser.service.records import OutboxItem

log = logging.getLogger("diagnoser.notify")
BATCH = 100
DIGEST = 10_000
"""Messages that one digest may hold."""
_LOOK_AGAIN = 60.0
_NOT_WRITTEN = 5.0


class Lane:
    """Delivers what the outbox holds for one receiver. `run` until cancelled."""

    def __init__(
        self, notifier: Notifier, history: History, clock: Callable[[], float], backoff: Backoff = BACKOFF
    ) -> None:
        self.notifier = notifier
        self.problem = ""
        """Why the newest attempt failed; empty if it did not."""
        self._history, self._clock, self._backoff = history, clock, backoff
        self._bucket, self._throttled, self._inherited = Bucket(notifier.rate, clock()), False, False
        self._failures, self._paused_until = 0, 0.0
        self._held: dict[str, OutboxItem] = {}
        self._offered: OutboxItem | None = None
        self._stopped = self._flushing = False
        self._wake, self._lock, self._known = asyncio.Event(), asyncio.Lock(), False

    def succeed(self, old: Lane) -> None:
        """Takes the place of a lane to the same receiver, after a reload: its rate and its failures still count."""
        if old.notifier.rate == self.notifier.rate:
            self._bucket, self._throttled, self._inherited = old._bucket, old._throttled, old._known
        self._failures = old._failures

    def wake(self) -> None:
        """Something was added."""
        self._wake.set()

    def stop(self) -> None:
        """`run` ends after the attempt that is under way. `flush` works still."""
        self._stopped = True
        self.wake()

    def offer(self, item: OutboxItem) -> None:
        """An item that needs no keeping, since a newer one takes its place."""
        self._offered = item
        self.wake()

    async def run(self) -> None:
        """Delivers until `stop`."""
        while not self._stopped:
            self._wake.clear()
            try:
                wait = await self.turn()
            except Exception:
                log.exception("the lane of receiver %s stumbled", self.notifier.name)
                wait = _NOT_WRITTEN
            if not self._stopped:
                await self._rest(wait)

    async def _rest(self, seconds: float) -> None:
        """Until then, or until something was added."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._wake.wait()

    async def flush(self) -> None:
        """Delivers what can be delivered now."""
        self._flushing = True
        while await self.turn() <= 0:
            pass

    async def turn(self) -> float:
        """Delivers what is due. Returns in how many seconds there may be more; 0 is at once."""
        async with self._lock:
            if not self._known:
                await self._remember()
            now = self._clock()
            if now < self._paused_until:
                return self._paused_until - now
            if self._offered is not None:
                await self._send_offered()
            limit = DIGEST if self._throttled else BATCH
            due = await self._history.outbox_due(now, limit, self.notifier.name)
            if not due:
                return await self._until_next(now)
            return await self._deliver_all(await self._in_order(due), now)

    async def _remember(self) -> None:
        """After a start: what was sent before counts for the rate, and items that failed keep those of their subject
        behind them.
        """
        rate = self.notifier.rate
        if rate is not None and not self._inherited:
            since = self._clock() - rate.seconds
            self._bucket.passed(await self._history.outbox_sent(self.notifier.name, since))
        pending = await self._history.outbox_due(math.inf, DIGEST, self.notifier.name)
        seen: set[str] = set()
        for item in sorted(pending, key=lambda one: one.created_at):
            new = [subject for subject in subjects(item) if subject not in seen]
            seen.update(new)
            if item.attempts:
                self._held.update(dict.fromkeys(new, item))
        self._known = True

    async def _until_next(self, now: float) -> float:
        ahead = await self._history.outbox_due(math.inf, 1, self.notifier.name)
        return min(_LOOK_AGAIN, max(0.001, ahead[0].next_at - now)) if ahead else _LOOK_AGAIN

    async def _in_order(self, due: Sequence[OutboxItem]) -> list[OutboxItem]:
        """Without those whose subject has an older item in its back-off: they come right after it."""
        free = []
        for item in due:
            heads = [self._held[s] for s in subjects(item) if s in self._held and self._held[s].id != item.id]
            if not heads:
                free.append(item)
                continue
            await self._note(replace(item, next_at=max(head.next_at for head in heads) + 0.001))
        return free

    async def _deliver_all(self, due: list[OutboxItem], now: float) -> float:
        wait = self._bucket.wait(now)
        if wait > 0:
            self._throttled = True
            return wait
        if self._throttled:
            due, self._throttled = await self._merged(due, now), False
        for item in due:
            if self._stopped and not self._flushing:
                return _LOOK_AGAIN
            wait = self._bucket.wait(self._clock())
            if wait > 0:
                self._throttled = True
                return wait
            if not await self._deliver(item):
                return max(0.001, self._paused_until - self._clock())
        return 0.0

    async def _merged(self, due: list[OutboxItem], now: float) -> list[OutboxItem]:
        """What the rate limit held back, as one message. What was tried before keeps its name and stays alone."""
        fresh = [item for item in due if not item.attempts]
        if len(fresh) < 2:
            return due
        digest = digest_of(fresh, self.notifier.name, now)
        notes = [replace(item, state="done", error=f"merged into {digest.id} by the rate limit") for item in fresh]
        try:
            await self._history.transact(lambda db: store(db, digest, notes))
        except HistoryError:
            await self._history.outbox_add([digest])
            for note in notes:
                await self._note(note)
        return [item for item in due if item.attempts] + [digest]

    async def _deliver(self, item: OutboxItem) -> bool:
        """One attempt; False if the receiver wants no more now. The attempt is counted before it is made: after a
        crash in between, the next one knows that this may have arrived.
        """
        item = replace(item, attempts=item.attempts + 1)
        await self._note(item)
        outcome = await self._attempt(item)
        if outcome.retry:
            await self._later(item, outcome)
            return False
        self._bucket.take()
        state = "done" if outcome.accepted else "dead"
        self._failures, self.problem = 0, "" if outcome.accepted else outcome.reason
        self._held = {subject: held for subject, held in self._held.items() if held.id != item.id}
        if state == "dead":
            log.error("receiver %s refuses message %s for good: %s", self.notifier.name, item.id, outcome.reason)
        await self._note(replace(item, state=state, next_at=self._clock(), error=outcome.reason))
        return True

    async def _attempt(self, item: OutboxItem) -> Outcome:
        try:
            return await self.notifier.deliver(item)
        except Exception as error:
            log.exception("receiver %s stumbled over message %s", self.notifier.name, item.id)
            return Outcome(False, True, f"a bug here ({type(error).__name__}): please report it")

    async def _later(self, item: OutboxItem, outcome: Outcome) -> None:
        self._failures += 1
        self.problem = outcome.reason
        asked, now = outcome.retry_after or 0.0, self._clock()
        self._paused_until = now + max(asked, self._backoff.after(self._failures))
        again = now + max(asked, self._backoff.after(item.attempts))
        failed = replace(item, next_at=max(again, self._paused_until), error=outcome.reason)
        self._held.update(dict.fromkeys(subjects(item), failed))
        log.warning("receiver %s: %s; attempt %d", self.notifier.name, outcome.reason, item.attempts)
        await self._note(failed)

    async def _send_offered(self) -> None:
        item, self._offered = self._offered, None
        if item is not None:
            outcome = await self._attempt(replace(item, attempts=1))
            self.problem = outcome.reason
            if not outcome.accepted:
                log.warning("receiver %s: %s; state not sent again", self.notifier.name, outcome.reason)

    async def _note(self, item: OutboxItem) -> None:
        await self._history.outbox_update(
            item.id, state=item.state, attempts=item.attempts, next_at=item.next_at, error=item.error
        )
