"""uvicorn around the application: binds, serves until told to stop, and ends what is still open."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from diagnoser.errors import UsageError
from diagnoser.service.api.app import create_app
from diagnoser.service.api.protocol import Protocol
from diagnoser.service.api.settings import Tls, WebSettings
from diagnoser.service.config_base import secret_of

if TYPE_CHECKING:
    from diagnoser.service.service import Service

KEEP_ALIVE_SECONDS = 75
"""Longer than the usual scrape interval, so that Prometheus keeps its connection."""
MAX_CONNECTIONS = 2000
log = logging.getLogger("diagnoser.web")


class _Server(uvicorn.Server):
    """uvicorn, but signals belong to whoever runs the service."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


class WebServer:
    """The HTTP side of a service. `start`, then `stop`."""

    def __init__(self, service: Service) -> None:
        self.settings: WebSettings = service.config.web
        self.app = create_app(service)
        self.address = self.settings.listen
        """Where it listens; with the real port once it has started."""
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Binds and begins to answer. UsageError if the address or the certificate cannot be used."""
        settings, configured = self.settings, _configured(self.app, self.settings)
        taken = _bound(settings)
        self._server = _Server(configured)
        host, port = taken.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if settings.insecure and not settings.loopback and settings.tokens_file is None:
            log.warning("%s answers anybody: web.insecure is set", self.address)
        elif not settings.loopback and settings.tls is None:
            log.warning("%s has no TLS: tokens pass in clear text unless a proxy in front encrypts", self.address)
        self._serving = asyncio.create_task(self._server.serve([taken]))
        while not self._server.started:
            if self._serving.done():
                await self._serving
                raise UsageError(f"web.listen {self.settings.listen}: the server ended at once")
            await asyncio.sleep(0.01)

    async def reload(self, settings: WebSettings) -> None:
        """Takes over tokens, limits and lists. UsageError if `listen` or `tls` changed: that needs a restart."""
        if (settings.listen, settings.tls) != (self.settings.listen, self.settings.tls):
            raise UsageError("web.listen and web.tls are only read at the start: restart the service to change them")
        self.app.state.guard.adopt(settings)
        self.settings = settings

    async def stop(self, deadline: float) -> None:
        """Ends the event streams, then waits for the other answers, at most `deadline` seconds."""
        if self._server is None or self._serving is None:
            return
        await self.app.state.events.close()
        self._server.should_exit = True
        done, _ = await asyncio.wait({self._serving}, timeout=deadline)
        if not done:
            self._server.force_exit = True
            await asyncio.wait({self._serving}, timeout=5.0)


def _configured(app: FastAPI, settings: WebSettings) -> uvicorn.Config:
    tls = settings.tls
    config = uvicorn.Config(
        app, http=Protocol, ws="none", lifespan="on", access_log=False, log_config=None, server_header=False,
        proxy_headers=False, timeout_keep_alive=KEEP_ALIVE_SECONDS, limit_concurrency=MAX_CONNECTIONS,
        ssl_context_factory=None if tls is None else lambda *_: _tls(tls),
    )  # fmt: skip
    config.load()
    return config


def _bound(settings: WebSettings) -> socket.socket:
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        # asyncio sets TCP_NODELAY only where the protocol is told: without, small answers take 40 ms longer.
        taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise _taken(settings, error) from None
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        taken.bind(address)
        taken.listen(1024)
    except OSError as error:
        taken.close()
        raise _taken(settings, error) from None
    return taken


def _taken(settings: WebSettings, error: OSError) -> UsageError:
    return UsageError(f"web.listen {settings.listen}: cannot be listened on ({error.strerror or error})")


def _tls(settings: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    password = None if settings.key_password_file is None else secret_of(settings.key_password_file)
    try:
        context.load_cert_chain(settings.cert, settings.key, password)
        if settings.client_ca is not None:
            context.load_verify_locations(settings.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or str(error)
        raise UsageError(f"web.tls: certificate, key or CA cannot be used ({why})") from None
    return context
