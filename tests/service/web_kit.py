"""The real application on a real port, with a board that the test fills from recordings."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import httpx

from diagnoser.data import data_dir
from diagnoser.errors import UsageError
from diagnoser.model import Diagnosis
from diagnoser.replay import instant, span
from diagnoser.rulebook.load import load
from diagnoser.rulebook.rules import Rulebook
from diagnoser.service.board import Transition
from diagnoser.service.config import Config
from diagnoser.service.history import History
from diagnoser.service.service import Service
from diagnoser.service.states import TargetState
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
    """A service that polls nothing: the test says what was evaluated."""

    def __init__(self, config: Config) -> None:
        self.file, self.refusal = config, ""
        super().__init__(self._read)
        self.book = book()

    def _read(self) -> Config:
        """What stands in the file now, or why it cannot be read."""
        if self.refusal:
            raise UsageError(self.refusal)
        return self.file

    async def begin(self) -> None:
        self.history = await History.open(self.config.history.path, 7 * 86400.0, 2**30)
        self.board.remember(await self.history.last_transitions())
        await self.engines.open(self.config)
        await self._open_alerting(self.config)
        await self._open_web()

    async def end(self) -> None:
        await self.stop(2.0)

    async def evaluated(self, diagnoses: Sequence[Diagnosis]) -> tuple[Transition, ...]:
        """One round, as the service does it."""
        found = await self.history.record(diagnoses, self.board.put(diagnoses))
        self.stats.evaluated(0.01, max(one.at for one in diagnoses))
        self.ready = True
        self._tell(found)
        return found

    def targets(self) -> tuple[TargetState, ...]:
        names = sorted({entry.key.target for entry in self.board.entries()})
        return tuple(
            TargetState(n, f"http://{n}/metrics", "static", True, "", 1795976065.0, 1.0, {"team-a": "chat"})
            for n in names
        )


class Web:
    """A served world, for a test in another thread."""

    def __init__(self, world: World, loop: asyncio.AbstractEventLoop, scheme: str) -> None:
        assert world.web is not None
        self.world, self.server, self._loop = world, world.web, loop
        self.url = f"{scheme}://{world.web.address}"
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
        try:
            do(world.begin())
            web = Web(world, loop, "https" if config.web.tls else "http")
            with web.client:
                yield web
        finally:
            do(world.end())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


class Elsewhere:
    """A small HTTP server of the test: answers everything with `status`, `headers` and `body`, and notes who asked."""

    def __init__(self, body: bytes = b"", status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        """(path, Host header)"""
        answers = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answers.asked.append((self.path, self.headers["Host"]))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Elsewhere:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
