"""An engine over HTTP whose trouble a test turns on and off."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from story import text, vllm


class EnginePage:
    """A page whose counters go on; whether KV space is short is up to the test."""

    def __init__(self) -> None:
        self.bound, self._start, self.address = False, time.monotonic(), ""

    def text(self) -> str:
        t = time.monotonic() - self._start
        bound = {"running": 4.0, "waiting": 6.0, "capacity": 6.0, "usage": 0.98}
        fine = {"running": 2.0, "waiting": 0.0, "capacity": 0.0, "usage": 0.3}
        counters = {
            "preempted": 2 * t,
            "prompt": 400 * t,
            "generated": 100 * t,
            "steps": 20 * t,
            "step_tokens": 120 * t,
        }
        return text(vllm(**(bound if self.bound else fine), **counters, finished=t, first=t))


@contextmanager
def engine() -> Iterator[EnginePage]:
    """It answers over HTTP."""
    page = EnginePage()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = page.text().encode() if self.path == "/metrics" else b""
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    page.address = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield page
    finally:
        server.shutdown()
        server.server_close()
