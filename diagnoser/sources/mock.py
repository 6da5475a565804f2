"""A recording served as a live engine: GET /metrics answers with the page that is due at this moment."""

from __future__ import annotations

import socket
import statistics
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Protocol, Self

from diagnoser.errors import RecordingError, UsageError

_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HOLE_INTERVALS = 5
"""A page counts for at most so many usual intervals: in a hole of the recording it would look like a frozen engine."""


class MockPage(Protocol):
    """One poll: unix seconds, and a page or an error."""

    @property
    def at(self) -> float: ...
    @property
    def text(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...


class MockRecording(Protocol):
    """What is served: a RecordedTarget, or anything with a name and pages in time order."""

    @property
    def name(self) -> str: ...
    def pages(self) -> Iterable[MockPage]: ...


class MockEngine:
    """Serves `recording` from `start()` on, in step with the clock times `speed`.

    A recorded failure drops the connection. After the last page, and in holes of the recording, the answer is 503. With
    `loop` the recording begins again: counters fall back to their first value, as when an engine restarts.
    """

    def __init__(
        self,
        recording: MockRecording,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        speed: float = 1.0,
        loop: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not speed > 0:
            raise UsageError(f"the speed must be above 0, not {speed:g}: 1 is real time, 10 is ten times as fast.")
        pages = list(recording.pages())
        if not pages:
            raise RecordingError(f"{recording.name}: the recording holds no page to serve.")
        self._bodies = [None if page.text is None else page.text.encode("utf-8", "surrogateescape") for page in pages]
        self._offsets = [page.at - pages[0].at for page in pages]
        gaps = [later - earlier for earlier, later in zip(self._offsets, self._offsets[1:], strict=False)]
        self._interval = statistics.median(gaps) if gaps else 1.0
        self._host, self._port, self._speed, self._loop, self._clock = host, port, speed, loop, clock
        self._started: float | None = None
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """Address of the page. The port is known after `start()`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/metrics"

    @property
    def duration_seconds(self) -> float:
        """How long one pass takes, in real seconds."""
        return (self._offsets[-1] + self._interval) / self._speed

    @property
    def remaining_seconds(self) -> float:
        """Real seconds until the recording ends; infinite with `loop`."""
        if self._loop:
            return float("inf")
        return max(self.duration_seconds - self._elapsed() / self._speed, 0.0)

    def start(self) -> None:
        """Listen and begin with the first page. UsageError if the port is taken or not allowed."""
        try:
            self._server = _Server((self._host, self._port), self)
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot listen on {self._host}:{self._port} ({error}); choose another --port.") from error
        self._port = int(self._server.server_address[1])
        self._started = self._clock()
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        """Stop listening and close every connection. Safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.close_connections()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def answer(self) -> tuple[int, bytes] | None:
        """(status, body) due now; None where the connection is to be dropped."""
        now = self._elapsed()
        total = self._offsets[-1] + self._interval
        if self._loop:
            now %= total
        elif now >= total:
            return 503, b"recording ended\n"
        due = bisect_right(self._offsets, now) - 1
        if now - self._offsets[due] > _HOLE_INTERVALS * self._interval:
            return 503, b"nothing was recorded at this moment\n"
        body = self._bodies[due]
        return None if body is None else (200, body)

    def _elapsed(self) -> float:
        """Seconds of the recording since `start()`."""
        return 0.0 if self._started is None else (self._clock() - self._started) * self._speed


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], engine: MockEngine) -> None:
        self.engine = engine
        self._open: set[socket.socket] = set()
        self._lock = Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's asks DNS for a name that nobody needs

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Wake the threads that wait on kept-alive connections; each closes its own."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):  # the client was faster
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keep-alive
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            return self._send(404, b"only /metrics is served\n")
        answer = self.server.engine.answer()
        if answer is None:
            self.close_connection = True
            return None
        return self._send(*answer)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", _MEDIA_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the clients of a mock poll it every second."""
