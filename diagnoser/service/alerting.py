"""Alerting as one object: receivers, outbox, silences, transitions, and alerts that come in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from diagnoser.errors import UsageError
from diagnoser.service.board import Entry
from diagnoser.service.history import History
from diagnoser.service.inbound import Engines, Inbound
from diagnoser.service.inbound_settings import WebhookSettings
from diagnoser.service.notify.alertmanager import Alertmanager
from diagnoser.service.notify.base import Notifier
from diagnoser.service.notify.chat import Chat
from diagnoser.service.notify.pace import BACKOFF, Backoff
from diagnoser.service.notify.settings import NotifySettings, Receiver
from diagnoser.service.notify.silences import Silences
from diagnoser.service.notify.verdicts import Links
from diagnoser.service.notify.webhook import Webhook
from diagnoser.service.outbox import Outbox
from diagnoser.service.transitions import Watchdog


class Alerting:
    """Create with `await Alerting.open(...)`; `run` it; call `saw` after every evaluation."""

    def __init__(
        self, history: History, engines: Engines, silences: Silences, clock: Callable[[], float], backoff: Backoff
    ) -> None:
        self._engines, self._clock = engines, clock
        self.silences = silences
        self.outbox = Outbox(history, {}, clock, backoff)
        self.watchdog = Watchdog(history, self.outbox, silences)
        self.inbound = Inbound(history, engines, WebhookSettings(), Links(""), self.outbox.wake, clock)

    @classmethod
    async def open(
        cls,
        notify: NotifySettings,
        webhook: WebhookSettings,
        history: History,
        engines: Engines,
        base_url: str,
        *,
        clock: Callable[[], float] = time.time,
        backoff: Backoff = BACKOFF,
    ) -> Alerting:
        """UsageError if a secret cannot be read, Apprise does not understand a URL, or a name is wrong.

        `base_url` is used in links unless `notify.external_url` says otherwise.
        """
        made = cls(history, engines, await Silences.open(history, clock), clock, backoff)
        await made.watchdog.load()
        await made.use(notify, webhook, base_url)
        await made.outbox.recount()
        return made

    async def use(self, notify: NotifySettings, webhook: WebhookSettings, base_url: str) -> None:
        """After a (re)load. UsageError, and nothing is changed, if it cannot be used."""
        notifiers = receivers(notify, webhook)
        links = Links(notify.external_url or base_url, notify.runbook_url)
        self.silences.use(notify.silences)
        self.watchdog.use(notify, links, self._engines.labels_of)
        self.inbound.use(webhook, links)
        await self.outbox.use({**{one.name: one for one in notifiers}, **self.inbound.lanes()})

    async def saw(self, entries: Sequence[Entry], now: float) -> None:
        """One evaluation is done. Never waits for a receiver."""
        await self.watchdog.saw(entries, now)

    async def run(self) -> None:
        """Delivers until cancelled."""
        await self.outbox.run()

    async def drain(self, seconds: float) -> None:
        """Delivers what can be delivered in that time; the rest stays on disk."""
        await self.outbox.drain(seconds)

    async def close(self) -> None:
        """Ends the receivers' connections."""
        await self.outbox.close()

    def problems(self) -> tuple[str, ...]:
        """What to alarm about."""
        return self.outbox.problems()


def receivers(notify: NotifySettings, webhook: WebhookSettings) -> list[Notifier]:
    """Every receiver, ready to be told. UsageError for what cannot work; also a check of the configuration."""
    for name in webhook.forward:
        found = next((receiver for receiver in notify.receivers if receiver.name == name), None)
        if found is None:
            raise UsageError(f"webhook.forward names {name}, which is no receiver of notify.receivers.")
        if found.alertmanager is not None:
            raise UsageError(f"webhook.forward: {name} is an Alertmanager, and its alerts would come back here.")
    return [_notifier(receiver, notify) for receiver in notify.receivers]


def check(notify: NotifySettings, webhook: WebhookSettings) -> None:
    """UsageError, naming the receiver, for what pydantic cannot see: unreadable secrets, unknown Apprise URLs."""

    async def close(made: Sequence[Notifier]) -> None:
        await asyncio.gather(*(one.close() for one in made))

    asyncio.run(close(receivers(notify, webhook)))


def _notifier(receiver: Receiver, notify: NotifySettings) -> Notifier:
    language = receiver.language or notify.language
    rate = receiver.rate_limit or notify.rate_limit.per_receiver
    try:
        if receiver.alertmanager is not None:
            return Alertmanager(receiver.name, receiver.alertmanager, language, receiver.rate_limit)
        if receiver.webhook is not None:
            return Webhook(receiver.name, receiver.webhook, language, rate)
        assert receiver.apprise is not None
        return Chat(receiver.name, receiver.apprise, language, rate)
    except UsageError as error:
        raise UsageError(f"receiver {receiver.name}: {error}") from None
