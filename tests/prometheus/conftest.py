"""Two real servers with the same recordings, a proxy that plays Mimir or Thanos, and the command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from diagnoser.model import Fact
from diagnoser.served import Served, Wish, served
from diagnoser.sources.prometheus.access import Access, open_client
from diagnoser.sources.prometheus.api import Server
from diagnoser.sources.recording import RecordedTarget, open_recording

from .servers import Stored, prometheus, victoria

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
PREEMPTING, TWO_RANKS, KILLED = "vllm-0.32.0--c-l1-preempt", "vllm-0.32.0--m-dp2", "vllm-0.32.0--i-killed"
SGLANG, SGLANG_RANKS = "sglang-0.5.23--d-reservation", "sglang-0.5.23--l-dp2"
LOADED = (PREEMPTING, TWO_RANKS, KILLED, SGLANG, SGLANG_RANKS)


def bare(name: str) -> RecordedTarget:
    """A recording without its meta.json: a server stores nothing of it."""
    (target,) = open_recording(RECORDINGS / f"{name}.tar.xz").targets
    return RecordedTarget(name, {}, target._polls)


def stored() -> list[Stored]:
    """What both servers hold."""
    return [Stored(bare(name), {"job": name.partition("-")[0], "instance": name}) for name in LOADED]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """URLs by product."""
    folder = tmp_path_factory.mktemp("servers")
    with prometheus(folder / "prometheus", stored()) as one, victoria(folder / "victoria", stored()) as other:
        yield {"prometheus": one, "victoria": other}


FLEET_END = 1_795_976_124.0


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus in which all recordings end at FLEET_END."""
    moved = [replace(one, shift=FLEET_END - one.recorded.times[-1]) for one in stored()]
    with prometheus(tmp_path_factory.mktemp("fleet"), moved) as url:
        yield url


@dataclass
class Asked:
    """What a server gave, and what it cost."""

    served: Served
    server: Server


def ask(url: str, at: float, match: str = "", window: float = 30.0, facts: Mapping[str, Fact] | None = None) -> Asked:
    """The source alone, without the command."""

    async def work() -> Asked:
        async with open_client(Access(url)) as client:
            server = Server(client, url)
            return Asked(await served(server, Wish(at, window, match, facts or {})), server)

    return asyncio.run(work())


@dataclass
class Proxy:
    """Before a real server: a prefix, required headers, changes to its answers. `seen` are the headers that came."""

    upstream: str
    prefix: str = ""
    required: Mapping[str, str] = field(default_factory=dict)
    change: Callable[[dict[str, Any], str], None] = lambda answer, query: None
    seen: list[Mapping[str, str]] = field(default_factory=list)

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """One POST."""
        body = request.rfile.read(int(request.headers["Content-Length"]))
        self.seen.append(dict(request.headers))
        lacking = [name for name, value in self.required.items() if request.headers.get(name) != value]
        if not request.path.startswith(f"{self.prefix}/api/v1/"):
            return respond(request, b"404 page not found\n", 404)
        if lacking:
            return respond(request, b"no org id\n" if "X-Scope-OrgID" in lacking else b"", 401)
        path = request.path.removeprefix(self.prefix)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = httpx.post(self.upstream + path, content=body, headers=headers, timeout=30, trust_env=False).json()
        self.change(answer, httpx.QueryParams(body.decode())["query"])
        return respond(request, json.dumps(answer).encode())


def respond(request: BaseHTTPRequestHandler, body: bytes, status: int = 200, length: int | None = None) -> None:
    """An answer with that body; `length` lies about it."""
    request.send_response(status)
    request.send_header("Content-Length", str(len(body) if length is None else length))
    request.end_headers()
    request.wfile.write(body)


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Starts HTTP servers: `serve(handler)` gives the URL; the handler is called for every POST."""
    started: list[ThreadingHTTPServer] = []

    def start(handle: Callable[[BaseHTTPRequestHandler], None], tls: Any = None) -> str:
        class Once(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                handle(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that went away is no event."""

        server = Quiet(("127.0.0.1", 0), Once)
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        started.append(server)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()
