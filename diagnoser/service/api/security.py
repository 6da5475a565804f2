"""Who gets in: Host and Origin, rate, token and scope; and what browsers are told."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diagnoser.service.api import tokens
from diagnoser.service.api.limits import WEBHOOK, RateLimit, client_of, drain, limited
from diagnoser.service.api.problems import Problem, problem
from diagnoser.service.api.settings import WebSettings

PUBLIC = frozenset({"/healthz", "/readyz", "/api/v1/openapi.json", "/", "/favicon.ico"})
"""Answers that hold nothing of an engine: probes, the description of the API, the empty page."""
PUBLIC_PREFIX = "/static/"
PROBES = frozenset({"/healthz", "/readyz"})
"""They tell nothing. A flood from one address must not make a probe fail and the process be killed, and a kubelet asks
by the address of the pod.
"""
READING_POSTS = frozenset({"/api/v1/capacity"})
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
COMMON = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
API_POLICY = "default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
CORS = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match, Last-Event-ID",
    "Access-Control-Expose-Headers": "ETag, Retry-After",
    "Access-Control-Max-Age": "600",
}
log = logging.getLogger("diagnoser.access")


def scope_of(method: str, path: str) -> tokens.Scope | None:
    """What a token must be good for; None: no token is asked for."""
    if method in ("GET", "HEAD") and (path in PUBLIC or path.startswith(PUBLIC_PREFIX)):
        return None
    if path.rstrip("/") == WEBHOOK:
        return "webhook"
    return "read" if method in ("GET", "HEAD") or path.rstrip("/") in READING_POSTS else "write"


class GuardLayer:
    """The guard as ASGI middleware, so that it can be reached from outside: a reload changes its settings."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http":
            await self._guard.answer(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)


class Guard:
    """The outermost layer: every request passes it, and every answer gets its headers and a line in the log.

    `observe(method, route, status, seconds)` is told of every answer.
    """

    def __init__(self, settings: WebSettings, observe: Callable[[str, str, int, float], None] | None = None) -> None:
        self._observe = observe
        self.adopt(settings)

    def adopt(self, settings: WebSettings) -> None:
        """Takes over other settings. UsageError if the tokens cannot be read: the old ones stay."""
        found = None if settings.tokens_file is None else tokens.Tokens(settings.tokens_file)
        self.settings, self.tokens = settings, found
        self._rate = RateLimit(settings.requests_a_second)
        self._hosts = self._own_hosts(settings)

    @staticmethod
    def _own_hosts(settings: WebSettings) -> frozenset[str]:
        """Names a Host header may have; empty: any. Without it a page that rebinds its name to 127.0.0.1 reads us."""
        if not settings.loopback:
            return frozenset(map(str.lower, settings.hosts))
        own = f"[{settings.host}]" if ":" in settings.host else settings.host
        return LOCAL_NAMES | {own.lower(), *map(str.lower, settings.hosts)}

    async def answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        seen = _Answer(scope, send, self.settings, Headers(scope=scope).get("origin", ""))
        scope["state"] = {**scope.get("state", {}), "client": client_of(scope, self.settings)}
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await drain(scope, receive)
                await refusal(scope, receive, seen.send)
                return
            inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await app(inner, limited(scope, receive, self.settings), seen.send)
            scope["route"] = inner.get("route")
        except ClientDisconnect:
            pass
        except Problem as error:
            await drain(scope, receive)
            await seen.instead(error.response(), receive)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            await seen.instead(problem(500, "The service failed to answer; its log says why."), receive)
        finally:
            self._note(scope, seen)

    def _refusal(self, scope: Scope) -> Any:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        try:
            if path not in PROBES:
                self._check_host(headers)
                self._check_rate(scope["state"]["client"], path)
            if method == "OPTIONS" and headers.get("origin", "").lower() in self.settings.cors:
                return _NoContent()
            self._check_origin(method, headers)
            self._check_token(headers, scope, scope_of(method, path))
        except Problem as error:
            return error.response()
        return None

    def _check_host(self, headers: Headers) -> None:
        host = re.sub(r":[0-9]*$", "", headers.get("host", "")).lower()
        if self._hosts and host not in self._hosts:
            raise Problem(403, "The Host header names another machine; web.hosts lists more names.", "host-refused")

    def _check_rate(self, client: str, path: str) -> None:
        wait = self._rate.wait(client)
        if wait:
            seconds = str(max(1, round(wait + 0.5)))
            detail = f"More than {self.settings.rate_limit} requests from {client}."
            # Alertmanager sends again after 5xx alone: a 429 would lose the alert.
            status = 503 if path.rstrip("/") == WEBHOOK else 429
            raise Problem(status, detail, "too-many-requests", {"Retry-After": seconds})

    def _check_origin(self, method: str, headers: Headers) -> None:
        """A foreign page may make a browser send, though not read: nothing must happen by that."""
        origin = headers.get("origin", "").lower()
        same = origin.partition("://")[2] == headers.get("host", "").lower()
        if method in ("GET", "HEAD") or (not origin and headers.get("sec-fetch-site", "none") in _OWN_SITES):
            return
        if not same and origin not in self.settings.cors:
            raise Problem(403, "The request comes from a page of another origin (web.cors).", "origin-refused")

    def _check_token(self, headers: Headers, scope: Scope, needed: tokens.Scope | None) -> None:
        if self.tokens is None or needed is None:
            return
        token = self.bearer(headers)
        if token is None:
            given = "authorization" in headers
            challenge = 'Bearer error="invalid_token"' if given else "Bearer"
            detail = "The token is not valid (any more)." if given else "Send a token: Authorization: Bearer TOKEN."
            raise Problem(401, detail, headers={"WWW-Authenticate": challenge})
        scope["state"]["token"] = token.name
        if needed not in token.scopes:
            challenge = f'Bearer error="insufficient_scope", scope="{needed}"'
            raise Problem(
                403, f"The token {token.name} lacks the scope {needed}.", "scope", {"WWW-Authenticate": challenge}
            )

    def bearer(self, headers: Headers) -> tokens.Token | None:
        """The valid token that came with the request."""
        kind, _, value = headers.get("authorization", "").partition(" ")
        if self.tokens is None or kind.lower() != "bearer":
            return None
        return self.tokens.find(value.strip())

    def still_valid(self, headers: Headers) -> bool:
        """For streams: may the caller still read?"""
        token = self.bearer(headers)
        return self.tokens is None or (token is not None and "read" in token.scopes)

    def _note(self, scope: Scope, seen: _Answer) -> None:
        seconds, state = time.perf_counter() - seen.began, scope["state"]
        route = getattr(scope.get("route"), "path", "") or "other"
        if self._observe is not None:
            self._observe(scope["method"], route, seen.status, seconds)
        path = scope["path"].encode("ascii", "backslashreplace").decode()[:500].translate(_CONTROLS)
        # Never the query or a header: they may hold secrets of whoever calls us by mistake.
        told = {"client": state["client"], "method": scope["method"], "path": path, "status": seen.status}
        log.info("request", extra={**told, "ms": round(seconds * 1000, 1), "token_name": state.get("token", "")})


_OWN_SITES = ("none", "same-origin")
_CONTROLS = {code: "?" for code in (*range(32), 127)}


class _NoContent:
    """The answer to a preflight of an allowed origin."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class _Answer:
    """An answer on its way: adds headers, remembers the status."""

    def __init__(self, scope: Scope, send: Send, settings: WebSettings, origin: str) -> None:
        self.began, self.status, self._started = time.perf_counter(), 499, False
        self._scope, self._send, self._settings, self._origin = scope, send, settings, origin

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started, self.status = True, message["status"]
            self._dress(MutableHeaders(scope=message))
        await self._send(message)

    def _dress(self, headers: MutableHeaders) -> None:
        path, settings = self._scope["path"], self._settings
        for name, value in COMMON.items():
            headers[name] = value
        page = path == "/" or path.startswith(PUBLIC_PREFIX)
        headers["Content-Security-Policy"] = PAGE_POLICY if page else API_POLICY
        if not page and "cache-control" not in headers:
            headers["Cache-Control"] = "no-store"
        if settings.tls is not None:
            headers["Strict-Transport-Security"] = "max-age=31536000"
        if settings.cors:
            headers.add_vary_header("Origin")
        if self._origin.lower() in settings.cors:
            headers["Access-Control-Allow-Origin"] = self._origin
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
            for name, value in CORS.items():
                headers[name] = value

    async def instead(self, response: Any, receive: Receive) -> None:
        """Another answer, if none has begun; else the connection breaks off, so that nobody takes half for whole."""
        if self._started:
            raise ConnectionAbortedError("the answer had begun")
        await response(self._scope, receive, self.send)
