"""Chat, paging and mail through Apprise. Its calls block, so each runs in a thread of its own, with a time limit."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from diagnoser.errors import UsageError
from diagnoser.language import Language
from diagnoser.service.notify.base import ACCEPTED, Outcome, read_secret
from diagnoser.service.notify.event import Message
from diagnoser.service.notify.fields import Rate
from diagnoser.service.notify.http import LATER
from diagnoser.service.notify.settings import AppriseSettings
from diagnoser.service.notify.words import text_of
from diagnoser.service.records import OutboxItem

_STATUS = re.compile(r"\berror=([1-5][0-9][0-9])\b")


@cache
def _library() -> Any:
    """Apprise with all its plug-ins, which are loaded once; they raise warnings of the standard library."""
    for logger in ("apprise", "urllib3", "requests"):
        logging.getLogger(logger).setLevel(logging.WARNING)  # below that they write URLs
    logging.getLogger("apprise").propagate = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import apprise

        apprise.Apprise.instantiate("json://localhost")
    return apprise


def _apprise() -> Any:
    """An empty one that works in the thread that calls it, where a service that hangs holds nobody else."""
    asset = _library().AppriseAsset()
    asset._service_timeout = 0
    return _library().Apprise(asset=asset)


class Chat:
    """One receiver of kind `apprise`: one URL, so that a retry repeats nothing elsewhere."""

    def __init__(self, name: str, settings: AppriseSettings, language: Language, rate: Rate | None) -> None:
        self.name, self.rate = name, rate
        self._settings, self._language = settings, language
        self._busy: threading.Thread | None = None
        self._service()

    def _service(self) -> Any:
        """Apprise's object for the URL. UsageError never repeats the URL: it is a secret."""
        lines = read_secret(self._settings.url)
        if len(lines) != 1:
            raise UsageError(f"receiver {self.name}: one URL a receiver, not {len(lines)}; name the others separately.")
        found = _apprise()
        if not found.add(lines[0]):
            scheme = lines[0].partition("://")[0] if "://" in lines[0] else "no scheme"
            raise UsageError(f"receiver {self.name}: Apprise does not understand its URL ({scheme}).")
        return found

    async def deliver(self, item: OutboxItem) -> Outcome:
        """Apprise only says yes or no; a status that its log tells decides whether to try again."""
        if self._busy is not None and self._busy.is_alive():
            return Outcome(False, True, "the attempt before this one still hangs")
        try:
            service = self._service()
        except UsageError as error:
            return Outcome(False, True, str(error))
        message = Message.from_json(item.payload)
        title, body = (_whole(text) for text in text_of(message, self._language, item.attempts))
        try:
            async with asyncio.timeout(self._settings.timeout):
                return await self._in_thread(lambda: _send(service, title, body, _kind(message)))
        except TimeoutError:
            return Outcome(False, True, f"no answer within {self._settings.timeout:g} s")

    async def _in_thread(self, work: Callable[[], Outcome]) -> Outcome:
        """In a daemon thread: one that hangs keeps neither the other receivers nor the end of the process waiting."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Outcome] = loop.create_future()

        def settle(outcome: Outcome) -> None:
            if not done.done():
                done.set_result(outcome)

        def run() -> None:
            outcome = work()
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, outcome)

        self._busy = threading.Thread(target=run, name=f"notify-{self.name}", daemon=True)
        self._busy.start()
        return await done

    async def close(self) -> None:
        """Nothing is kept open."""


def _whole(text: str) -> str:
    """Without halves of characters, which a page's labels may hold and no service takes."""
    return text.encode("utf-8", "replace").decode()


class _Heard(logging.Handler):
    """What Apprise says in this thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._thread, self.status = threading.get_ident(), 0

    def emit(self, record: logging.LogRecord) -> None:
        match = _STATUS.search(record.getMessage()) if record.thread == self._thread else None
        self.status = int(match[1]) if match else self.status


def _send(service: Any, title: str, body: str, kind: str) -> Outcome:
    heard, logger = _Heard(), logging.getLogger("apprise")
    logger.addHandler(heard)
    try:
        sent = bool(service.notify(title=title, body=body or title, notify_type=kind, body_format="text"))
    except Exception as error:  # a plug-in of Apprise may raise anything
        return Outcome(False, True, f"Apprise failed ({type(error).__name__})")
    finally:
        logger.removeHandler(heard)
    if sent:
        return ACCEPTED
    final = 400 <= heard.status < 500 and heard.status not in LATER
    said = f"it answered {heard.status}" if heard.status else "it could not be reached or refused"
    return Outcome(False, not final, f"{said} (Apprise)")


def _kind(message: Message) -> str:
    """Apprise's type, which many services show as a colour."""
    events = [event for one in (message, *message.messages) for event in one.events]
    severities = {event.severity for event in events if event.kind == "firing"}
    if not severities:
        return "success" if events else "info"
    return "failure" if "critical" in severities else "warning"
