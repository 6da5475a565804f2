"""The real application on a real port, with a board that the test fills from recordings."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import httpx

from diagnoser.data import data_dir
from diagnoser.model import Diagnosis
from diagnoser.replay import instant, span
from diagnoser.rulebook.load import load
from diagnoser.rulebook.rules import Rulebook
from diagnoser.service.api.server import WebServer
from diagnoser.service.board import Board, Key, Transition
from diagnoser.service.config import Config
from diagnoser.service.history import History
from diagnoser.service.service import Service
from diagnoser.service.states import ReloadResult, SourceState, TargetState
from diagnoser.service.stats import Stats
from diagnoser.sources.recording import open_recording

T = TypeVar("T")
RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
BOUND, HEALTHY, RESERVED = "vllm-0.32.0--c-l1-preempt", "sglang-0.5.23--b-healthy", "sglang-0.5.23--d-reservation"
IDLE_L2, TWO_RANKS, DEAD = "sglang-0.5.23--j1-hicache-l1-bound-l2-idle", "vllm-0.32.0--m-dp2", "vllm-0.32.0--i-killed"


@cache
def book() -> Rulebook:
    return load([data_dir("rules")])


@cache
def recorded(name: str, at: float | None = None) -> tuple[Diagnosis, ...]:
    """The diagnoses of a recording at its end, or that many seconds after its start."""
    recording = open_recording(RECORDINGS / f"{name}.tar.xz")
    first, last = span(recording)
    return instant(recording, book(), {}, 30.0, last if at is None else first + at)


def named(diagnosis: Diagnosis, target: str, at: float | None = None) -> Diagnosis:
    """The same of another target, at another time."""
    engine = replace(diagnosis.engine, target=target)
    return replace(diagnosis, engine=engine, at=diagnosis.at if at is None else at)


class World(Service):
    """A service that watches nothing: the test says what was evaluated."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.board, self.stats, self.book = Board(), Stats(), book()
        self.started_at, self.ready = time.time(), False
        self.listeners: list[Callable[[tuple[Transition, ...]], None]] = []
        self.last_reload, self.reload_to = ReloadResult(True), ReloadResult(True)
        self.reloaded_at: float | None = None
        self.alerting: Any = None

    async def begin(self) -> None:
        self.history = await History.open(self.config.history.path, 7 * 86400.0, 2**30)
        self.board.remember(await self.history.last_transitions())

    async def evaluated(self, diagnoses: Sequence[Diagnosis]) -> tuple[Transition, ...]:
        """One round, as the service does it."""
        found = await self.history.record(diagnoses, self.board.put(diagnoses))
        self.ready, self.stats.evaluations = True, self.stats.evaluations + 1
        self.stats.last_evaluation_at = max(one.at for one in diagnoses)
        for listener in self.listeners:
            listener(found)
        return found

    async def reload(self) -> ReloadResult:
        self.last_reload = self.reload_to
        return self.reload_to

    async def diagnose_at(self, key: Key, start: float, end: float) -> Diagnosis | None:
        return None

    def targets(self) -> tuple[TargetState, ...]:
        names = sorted({entry.key.target for entry in self.board.entries()})
        return tuple(TargetState(n, f"http://{n}/metrics", "static", True, "", 1795976065.0, 1.0) for n in names)

    def sources(self) -> tuple[SourceState, ...]:
        return (SourceState("static", "static", len(self.targets())),)

    def labels(self, target: str) -> Mapping[str, str]:
        return {}


class Web:
    """A served world, for a test in another thread."""

    def __init__(self, world: World, server: WebServer, loop: asyncio.AbstractEventLoop, scheme: str) -> None:
        self.world, self.server, self._loop = world, server, loop
        self.url = f"{scheme}://{server.address}"
        self.client = httpx.Client(base_url=self.url, timeout=30.0, trust_env=False, verify=False)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs on the service's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def evaluated(self, *diagnoses: Diagnosis) -> tuple[Transition, ...]:
        return self.do(self.world.evaluated(diagnoses))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.client.get(path, **more)

    def json(self, path: str, **more: Any) -> Any:
        answer = self.get(path, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def serve(settings: Mapping[str, Any] | None = None, history: Path | None = None) -> Iterator[Web]:
    """A world behind a real port; `settings` as in the section web."""
    section = {"listen": "127.0.0.1:0", "rate_limit": "100000/s", **(settings or {})}
    config = Config.model_validate({"web": section, "history": {} if history is None else {"path": str(history)}})
    loop, world = asyncio.new_event_loop(), World(config)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def do(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    try:
        do(world.begin())
        server = WebServer(world)
        do(server.start())
        web = Web(world, server, loop, "https" if config.web.tls else "http")
        try:
            yield web
        finally:
            web.client.close()
            do(server.stop(5.0))
            do(world.history.close())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
