"""For the tests of alerting: a real HTTP receiver that behaves as told, verdicts, and an outbox on a real file."""

from __future__ import annotations

import asyncio
import json
import queue
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from diagnoser.model import Diagnosis, EngineId, L2State, PoolState, Remedy, SignalValue, Verdict
from diagnoser.service.board import Board, Entry, Key, key_of
from diagnoser.service.history import History
from diagnoser.service.notify.base import ACCEPTED, Notifier, Outcome
from diagnoser.service.notify.event import Event, Message
from diagnoser.service.notify.fields import Rate
from diagnoser.service.notify.pace import Backoff
from diagnoser.service.notify.settings import NotifySettings, WebhookTarget
from diagnoser.service.notify.verdicts import Links, event_of
from diagnoser.service.notify.webhook import Webhook
from diagnoser.service.outbox import Outbox
from diagnoser.service.records import OutboxItem

PATIENCE = 30.0
"""Seconds until a test that waits for an event has failed."""
QUICK = Backoff(0.01, 0.05)
START = 1_795_900_000.0
LINKS = Links("https://diagnoser.example")


@dataclass
class Clock:
    """Time that a test moves."""

    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Arrived:
    """One request that a receiver got."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = tuple[int, Mapping[str, str]] | str
"""Status and headers, or "slow" (200 once `over` is set), "hang" (until then, and no answer) or "close" (at once)."""


@dataclass
class Receiver:
    """A real HTTP server. `answers` are given in order, then 200 for ever."""

    answers: Sequence[Answer] = ()
    arrived: queue.Queue[Arrived] = field(default_factory=queue.Queue)
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    async def next(self) -> Arrived:
        return await asyncio.to_thread(self.arrived.get, True, PATIENCE)

    def so_far(self) -> list[Arrived]:
        """All that came since the last call: a request is noted before it is answered."""
        return [self.arrived.get_nowait() for _ in range(self.arrived.qsize())]

    def serve(self) -> ThreadingHTTPServer:
        answers, lock = iter(self.answers), threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler) -> None:
                body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
                with lock:
                    answer = next(answers, (200, {}))
                self.arrived.put(Arrived(handler.path, dict(handler.headers), body))
                if answer in ("hang", "slow"):
                    self.over.wait(PATIENCE)
                answer = (200, {}) if answer == "slow" else answer
                if isinstance(answer, str):
                    handler.close_connection = True
                    return
                status, headers = answer
                handler.send_response(status)
                for name, value in {**headers, "Content-Length": "0"}.items():
                    handler.send_header(name, value)
                handler.end_headers()

            def log_message(handler, format: str, *args: Any) -> None:
                """Quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(server, request: Any, client_address: Any) -> None:
                """A client that went away is no event."""

        return Server(("127.0.0.1", 0), Handler)


@contextmanager
def receiver(*answers: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver that runs."""
    made = Receiver(answers)
    server = made.serve()
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    made.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield made
    finally:
        made.over.set()
        server.shutdown()
        server.server_close()


def webhook(name: str, url: str, rate: Rate | None = None, **settings: Any) -> Webhook:
    """The real notifier for a receiver."""
    return Webhook(name, WebhookTarget(url=url, **settings), "en", rate)


@dataclass
class Told:
    """A notifier that only remembers."""

    name: str = "told"
    rate: Rate | None = None
    items: list[OutboxItem] = field(default_factory=list)

    async def deliver(self, item: OutboxItem) -> Outcome:
        self.items.append(item)
        return ACCEPTED

    async def close(self) -> None:
        """Nothing."""


@asynccontextmanager
async def opened(path: Path | None = None) -> AsyncIterator[History]:
    """A history on a real file."""
    history = await History.open(path, 86400.0, 2**30)
    try:
        yield history
    finally:
        await history.close()


@asynccontextmanager
async def running(
    history: History, *notifiers: Notifier, clock: Callable[[], float] | None = None, backoff: Backoff = QUICK
) -> AsyncIterator[Outbox]:
    """An outbox that delivers."""
    by_name = {notifier.name: notifier for notifier in notifiers}
    outbox = Outbox(history, by_name, backoff=backoff) if clock is None else Outbox(history, by_name, clock, backoff)
    task = asyncio.create_task(outbox.run())
    try:
        yield outbox
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await outbox.close()


async def until(asks: Callable[[], Any]) -> Any:
    """Asks (a plain or an async function) until the answer is true."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = asks()
            found = await found if asyncio.iscoroutine(found) else found
            if found:
                return found
            await asyncio.sleep(0.01)


# ---------------------------------------------------------------- verdicts


HEADLINES = {"l1": "L1-BOUND (preempting), L2 idle", "none": "NO BOTTLENECK", "unreachable": "UNREACHABLE"}


def verdict(bottleneck: str = "l1", severity: str = "critical", mode: str | None = None, rule: str = "") -> Verdict:
    """A verdict as the rules would give it."""
    known = {"l1": ("preempting", "l1_preempting"), "none": (None, "healthy"), "unknown": ("mixed", "mixed")}
    default_mode, default_rule = known.get(bottleneck, (None, bottleneck))
    return Verdict(
        bottleneck=bottleneck,
        severity=severity,  # type: ignore[arg-type]
        confidence="high",
        headline=HEADLINES.get(bottleneck, f"{bottleneck.upper()}-BOUND, L2 idle"),
        mode=mode or default_mode,
        l2=L2State.IDLE_SPACE,
        shares={} if bottleneck == "none" else {bottleneck: 0.92, "none": 0.08},
        because=("KV space was the closed gate for 92 % of the window.", "Up to 41 requests waited (33 at the end)."),
        rule=rule or default_rule,
    )


FLAG = "--max-num-queued-reqs N (from 0.29), or a limit at the gateway"
SHED = Remedy("shed_load", "Shed or cap arrivals now", FLAG, "errors for some", "clients see 503")
SIGNALS = {
    "waiting_max_requests": 41.0,
    "waiting_last_requests": 33.0,
    "l1_used_ratio_max": 0.98,
    "ttft_p99_low_seconds": 20.0,
    "ttft_p99_high_seconds": 40.0,
    "preemptions_per_completion": 0.6,
}


def diagnosis(
    bottleneck: str = "l1",
    severity: str = "critical",
    target: str = "10.0.3.7:8000",
    rank: str = "0",
    model: str | None = "llama-3-70b",
    at: float = START,
    **more: Any,
) -> Diagnosis:
    """A diagnosis with that verdict."""
    severity = "info" if bottleneck == "none" else severity
    return Diagnosis(
        engine=EngineId("vllm", target, rank, "0.32.0", model),
        at=at,
        window_seconds=30.0,
        scrapes=31,
        verdict=verdict(bottleneck, severity, **more),
        l1=PoolState(8160.0),
        l2=None,
        signals={name: SignalValue(name, "", value) for name, value in SIGNALS.items()},
        remedies=(SHED,) if bottleneck != "none" else (),
    )


def entry(found: Diagnosis, since: float) -> Entry:
    """As the board shows it."""
    return Entry(key_of(found), found, since, 1)


def event(bottleneck: str = "l1", labels: Mapping[str, str] | None = None, at: float = START, **wishes: Any) -> Event:
    """A firing event."""
    return event_of(diagnosis(bottleneck, **wishes), at, at + 60, labels or {}, LINKS)


def resolved(firing: Event, after: float = 720.0, reason: str = "recovered") -> Event:
    """Its end."""
    now = {"rule": "healthy", "headline": "NO BOTTLENECK", "l2": "idle_space"}
    end = firing.starts_at + after
    return replace(firing, kind="resolved", at=end, ends_at=end, reason=reason, now=now)


def item(name: str, receiver: str = "hook", subject: str | None = None, at: float = START, **wishes: Any) -> OutboxItem:
    """A message on its way; `subject` is its own unless given."""
    message = Message(subject or name, (event(**wishes),))
    return OutboxItem(name, receiver, "alerts", message.to_json(), at, at)


@dataclass
class Engines:
    """What inbound alerts ask: a real board, and diagnoses that a test supplies for any time."""

    board: Board = field(default_factory=Board)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kept: dict[Key, Diagnosis] = field(default_factory=dict)
    asked: list[tuple[Key, float, float]] = field(default_factory=list)

    async def diagnose_at(self, key: Key, start: float, end: float) -> Diagnosis | None:
        self.asked.append((key, start, end))
        return self.kept.get(key)

    def labels_of(self, key: Key) -> Mapping[str, str]:
        return self.labels.get(key.target, {})


def notify(**settings: Any) -> NotifySettings:
    """Settings as a file would give them."""
    return NotifySettings.model_validate(settings)
