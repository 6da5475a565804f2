"""Engines and servers for tests of the poller, and waiting for what a loop will bring about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from diagnoser.demo import Excerpt
from diagnoser.sources.mock import MockEngine
from diagnoser.sources.recording import open_recording

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
PREEMPTING, HEALTHY, TWO_RANKS = "vllm-0.32.0--c-l1-preempt", "vllm-0.32.0--o-busy-not-bound", "vllm-0.32.0--m-dp2"
Handler = Callable[[BaseHTTPRequestHandler], None]
GIVE_UP_SECONDS = 30.0


def page(name: str = PREEMPTING, since: float = 20.0) -> bytes:
    """A page of that recording."""
    excerpt = Excerpt(open_recording(RECORDINGS / f"{name}.tar.xz").targets[0], since)
    return next(one.text for one in excerpt.pages() if one.text).encode()


def engine(name: str = PREEMPTING, speed: float = 20.0, since: float = 20.0, port: int = 0) -> MockEngine:
    """A live engine that plays a recording over and over."""
    excerpt = Excerpt(open_recording(RECORDINGS / f"{name}.tar.xz").targets[0], since)
    return MockEngine(excerpt, speed=speed, loop=True, port=port)


def address(mock: MockEngine) -> str:
    """host:port of it."""
    return mock.url.removeprefix("http://").removesuffix("/metrics")


@contextmanager
def site(handle: Handler, port: int = 0) -> Iterator[str]:
    """A server that does as told; gives host:port."""

    class Once(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            handle(self)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is no event."""

    server = Server(("127.0.0.1", port), Once)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def sends(body: bytes, status: int = 200, length: int | None = None, **headers: str) -> Handler:
    """A handler that answers every GET alike; `length` other than the body's breaks off."""

    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", str(len(body) if length is None else length))
        request.end_headers()
        request.wfile.write(body)
        request.close_connection = length is not None

    return handle


async def until(true: Callable[[], object]) -> None:
    """Lets the loop go on until that is so."""
    async with asyncio.timeout(GIVE_UP_SECONDS):
        while not true():
            await asyncio.sleep(0.005)
