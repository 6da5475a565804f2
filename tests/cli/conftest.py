"""A shell for the command, a live engine that plays a recording fast, and a server that misbehaves as told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from ran import Ran

from diagnoser.commands import setup  # noqa: F401 - pandas is imported now, not while an engine plays
from diagnoser.demo import Excerpt
from diagnoser.sources.mock import MockEngine
from diagnoser.sources.recording import open_recording

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
PREEMPTING = RECORDINGS / "vllm-0.32.0--c-l1-preempt.tar.xz"
RESERVATION = RECORDINGS / "sglang-0.5.23--d-reservation.tar.xz"
HEALTHY = RECORDINGS / "vllm-0.32.0--o-busy-not-bound.tar.xz"
TWO_RANKS = RECORDINGS / "vllm-0.32.0--m-dp2.tar.xz"
KILLED = RECORDINGS / "vllm-0.32.0--i-killed.tar.xz"
SPEED = 40.0
"""Recordings have a page a second; at this speed 0.8 s of sampling see 32 s of them."""
SLOW = 10.0
"""For commands that run as a process of their own."""
FAST = ("--window", "800ms", "--interval", "25ms")


def shell(*words: object, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> Ran:
    """Runs the command as its own process, bytes in and text out."""
    argv = [sys.executable, "-m", "diagnoser", *map(str, words)]
    ran = subprocess.run(argv, input=stdin, capture_output=True, env={**os.environ, **(env or {})}, timeout=60)
    return Ran(ran.returncode, ran.stdout.decode("utf-8", "replace"), ran.stderr.decode("utf-8", "replace"))


@pytest.fixture
def engine() -> Iterator[Callable[..., str]]:
    """Starts live engines: `engine(PREEMPTING)` gives host:port; `since` skips seconds of the recording.

    A process of its own needs a second to begin: play slower for it, or the recording is over.
    """
    started: list[MockEngine] = []

    def start(recording: Path, speed: float = SPEED, since: float = 0.0) -> str:
        mock = MockEngine(Excerpt(open_recording(recording).targets[0], since), speed=speed)
        mock.start()
        started.append(mock)
        return mock.url.removeprefix("http://").removesuffix("/metrics")

    yield start
    for mock in started:
        mock.stop()


Handler = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Starts servers: `serve(handler)` gives host:port; the handler is called for every GET."""
    servers: list[ThreadingHTTPServer] = []

    def start(handle: Handler) -> str:
        class Once(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                handle(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that went away is no event."""

        server = Server(("127.0.0.1", 0), Once)
        servers.append(server)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def sends(
    body: bytes, status: int = 200, headers: Sequence[tuple[str, str]] = (), length: int | None = None
) -> Handler:
    """A handler that answers every GET alike."""

    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers:
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body) if length is None else length))
        request.end_headers()
        request.wfile.write(body)

    return handle
