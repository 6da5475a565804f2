"""Limits of one client: requests a second, bytes of a request, seconds to send it."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from starlette.types import Message, Receive, Scope

from diagnoser.service.api.problems import Problem
from diagnoser.service.api.settings import WebSettings

DRAINED_BYTES, DRAINED_SECONDS = 4 * 2**20, 3.0
"""What is read of a body that was refused: a client that still sends when we close never sees the answer."""
MAX_CLIENTS = 10_000
"""Clients remembered; the one that was silent for longest is forgotten, and starts with a full bucket."""
BURST_SECONDS = 2.0
BODY_SECONDS, UPLOAD_SECONDS = 30.0, 600.0
"""Longest time to send a request's body."""
UPLOAD_PATH, WEBHOOK = "/api/v1/diagnose", "/api/v1/webhook/alertmanager"
WEBHOOK_BYTES = 8 * 2**20
"""A group of two thousand alerts; Alertmanager would not send again what is refused as too large."""


class RateLimit:
    """A token bucket a client: `rate` requests a second, `BURST_SECONDS` of them (at least 1) at once."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.size = rate, max(1.0, rate * BURST_SECONDS)
        self._clock = clock
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """0 if the request may pass, else seconds until one may."""
        key, now = _client(address), self._clock()
        left, at = self._clients.pop(key, (self.size, now))
        left = min(self.size, left + (now - at) * self.rate)
        passes = left >= 1.0
        self._clients[key] = (left - 1.0 if passes else left, now)
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return 0.0 if passes else (1.0 - left) / self.rate


def _client(address: str) -> str:
    """One household of IPv6 has a whole /64."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return address


def client_of(scope: Scope, settings: WebSettings) -> str:
    """Who asks: the peer, or whom a trusted proxy names in X-Forwarded-For (the nearest that is no such proxy)."""
    peer = (scope.get("client") or ("unknown", 0))[0]
    named = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
    chain = [part.strip() for part in named.split(",") if part.strip()]
    while chain and _trusted(peer, settings):
        peer = chain.pop()
    return peer if _address(peer) else "unknown"


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _trusted(peer: str, settings: WebSettings) -> bool:
    address = _address(peer)
    return address is not None and any(address in network for network in settings.trusted_proxies)


def limited(scope: Scope, receive: Receive, settings: WebSettings) -> Receive:
    """`receive` that raises Problem once the body is larger than allowed, or when it stops coming."""
    path = scope["path"].rstrip("/")
    upload = path == UPLOAD_PATH
    limit = settings.max_upload if upload else max(settings.max_body, WEBHOOK_BYTES * (path == WEBHOOK))
    seconds = UPLOAD_SECONDS if upload else BODY_SECONDS
    ends = asyncio.get_running_loop().time() + seconds
    told = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    if told.isdigit() and int(told) > limit:
        raise _too_large(limit)
    got, done = 0, False

    async def counted() -> Message:
        nonlocal got, done
        if done:
            return await receive()
        try:
            async with asyncio.timeout_at(ends):
                message = await receive()
        except TimeoutError:
            raise Problem(408, f"The body was not there within {seconds:g} s.") from None
        got += len(message.get("body", b""))
        done = not message.get("more_body", False)
        if got > limit:
            if not done:
                await drain(scope, receive)
            raise _too_large(limit)
        return message

    return counted


def _too_large(limit: int) -> Problem:
    return Problem(413, f"The body is larger than {limit / 2**20:g} MiB.", headers={"Connection": "close"})


async def drain(scope: Scope, receive: Receive) -> None:
    """Reads and drops the rest of a body, within bounds; not if the client waits to be told to send it."""
    names = {name for name, _ in scope["headers"]}
    if b"expect" in names or not names & {b"content-length", b"transfer-encoding"}:
        return
    left = DRAINED_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAINED_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
