"""Pages and configuration over HTTP. Every failure is one sentence for the user; no httpx exception gets out."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import httpx

from diagnoser.errors import PageError, TargetError, UnreachableError, UsageError
from diagnoser.model import Scrape, Target
from diagnoser.sources.base import MAX_PAGE_BYTES, ParsePage, decode_page, to_scrape

MAX_JSON_BYTES = 4 * 1024 * 1024
JSON_TIMEOUT_SECONDS = 2.0
# Plain text keeps the colons in the names: OpenMetrics without escaping=allow-utf-8 gets underscores.
HEADERS = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip"}


class Address(NamedTuple):
    """`name` for messages, without credentials; `metrics_url` of the page; `root_url` without a trailing slash."""

    name: str
    metrics_url: str
    root_url: str


def normalise_url(text: str) -> Address:
    """What the user typed as an address: "host:8000", "http://host:8000", "https://gateway/model-a/metrics".

    Without a path it is /metrics; any other path is taken as given. UsageError if it is no address.
    """
    text = text.strip()
    advice = "give host:port or a URL such as http://host:8000/metrics"
    try:
        url = httpx.URL(text if "://" in text else f"http://{text}").copy_with(fragment=None)
    except (httpx.InvalidURL, UnicodeError):
        raise UsageError(f"{public_url(text)!r} is no address: {advice} (IPv6 as [::1]:8000).") from None
    if url.scheme not in ("http", "https"):
        raise UsageError(f"{public_url(text)!r}: {url.scheme}:// cannot be scraped: {advice}.")
    if not url.host or "%" in url.host or " " in url.host or not 0 < (url.port or 80) < 65536:
        raise UsageError(f"{public_url(text)!r} has no usable host or port: {advice}.")
    if url.path in ("", "/"):
        url = url.copy_with(path="/metrics")
    root_path = url.path.rstrip("/").removesuffix("/metrics") if url.path.rstrip("/").endswith("/metrics") else ""
    root = str(url.copy_with(path=root_path or "/", query=None)).rstrip("/")
    netloc = url.netloc.decode("ascii")
    name = netloc if url.path == "/metrics" else netloc + url.path
    return Address(name, str(url), root)


def open_client() -> httpx.AsyncClient:
    """A client for one target. Clients are cheap, a pool shared by a thousand targets searches all of them each time.

    It ignores HTTP_PROXY and .netrc, as Prometheus does. Certificates verify against SSL_CERT_FILE or the system's.
    """
    # uvicorn closes idle connections after 5 s: polling every 5 s would race with it, so we close earlier.
    limits = httpx.Limits(max_connections=4, max_keepalive_connections=1, keepalive_expiry=3.0)
    return httpx.AsyncClient(verify=_tls(), limits=limits, trust_env=False)


@cache
def _tls() -> ssl.SSLContext:
    """One context for all clients: building it reads all CA certificates, some 20 ms."""
    return ssl.create_default_context()


async def fetch_page(
    client: httpx.AsyncClient,
    url: str,
    *,
    timeout: float,
    max_bytes: int = MAX_PAGE_BYTES,
    headers: Mapping[str, str] | None = None,
    name: str = "",
) -> bytes:
    """GET `url`, decompressed. `timeout` (seconds) covers everything from connecting to the last byte; no redirects.

    Raises UnreachableError or PageError whose sentence starts with `name` (default: the URL without credentials).
    """
    name = name or public_url(url)
    try:
        async with asyncio.timeout(timeout):
            return await _get(client, url, timeout, max_bytes, {**HEADERS, **(headers or {})}, name)
    except TimeoutError:
        reason = f"gave no complete answer within {timeout:g} s: the engine hangs or is overloaded; raise the timeout."
        raise UnreachableError(f"{name} {reason}") from None
    except (httpx.HTTPError, httpx.InvalidURL, httpx.CookieConflict, httpx.StreamError, OSError, UnicodeError) as error:
        raise UnreachableError(f"{name} {_transport_reason(error, timeout)}") from error


async def _get(
    client: httpx.AsyncClient, url: str, timeout: float, max_bytes: int, headers: Mapping[str, str], name: str
) -> bytes:
    # Half of the time must do for the connection, so that an address nobody answers is told from a slow page.
    limits = httpx.Timeout(timeout, connect=timeout / 2)
    async with client.stream("GET", url, headers=dict(headers), timeout=limits, follow_redirects=False) as response:
        if response.status_code != 200:
            to = response.headers["Location"] if response.has_redirect_location else None
            to = to and str(response.request.url.join(to))
            raise UnreachableError(f"{name} {status_reason(response.status_code, response.reason_phrase, to)}")
        # Codings multiply ("gzip, gzip" blows 64 KB up to 66 GB before we can count), and we asked for gzip only.
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("gzip", "x-gzip", "identity", ""):
            raise PageError(f"{name} answers in the encoding {coding!r}, which nobody asked for: switch it off there.")
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > max_bytes:
                size = f"{max_bytes / 2**20:g} MiB"
                raise PageError(f"{name} answers with more than {size}: this is no metrics page of an engine.")
        return bytes(body)


def status_reason(code: int, phrase: str, to: str | None) -> str:
    """An answer that is no page, as a predicate to the target's name; `to` is where it redirects."""
    if to:
        return f"redirects to {public_url(to)}: redirects are not followed, give that address if it is the right one."
    status = f"{code} {phrase}".strip()
    return f"answers {status}: {_ADVICE.get(code) or _ADVICE.get(code // 100 * 100) or _ADVICE[200]}"


_ADVICE: Mapping[int, str] = {
    100: "that is no answer to a GET; check what listens on this port.",
    200: "a metrics page comes with 200; check what listens on this port.",
    300: "redirects are not followed; give the final address.",
    400: "the request was refused; is this the engine's own port, and does it want http or https?",
    401: "it needs a token; pass --header 'Authorization: Bearer TOKEN' or use a URL with user:password@.",
    403: "access is not allowed; pass a token that may read metrics with --header, or ask for access.",
    404: "no metrics at this path; is this the engine's API port? SGLang has /metrics only with --enable-metrics.",
    429: "it limits the rate of requests; scrape less often or past the gateway.",
    500: "the metrics page itself fails; look into the log of the engine.",
    502: "a proxy in front of the engine cannot reach it; is the engine running?",
    503: "it is starting, stopping or has no healthy backend; look into the log of the engine.",
    504: "a proxy in front of the engine got no answer in time; is the engine hanging?",
}
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (httpx.ConnectTimeout, "cannot be connected to within {half:g} s: host down, wrong address or a firewall."),
    (httpx.PoolTimeout, "was not asked: all connections are busy; scrape less often."),
    (httpx.TimeoutException, "gave no complete answer within {timeout:g} s: the engine hangs or is overloaded."),
    (httpx.ProxyError, "cannot be reached through the proxy ({error}); check the proxy settings."),
    (httpx.UnsupportedProtocol, "has an address that is not http or https: give host:port or a URL."),
    (httpx.LocalProtocolError, "cannot be asked with these headers ({error}); check --header."),
    (httpx.RemoteProtocolError, "breaks off or does not speak HTTP ({error}); is it https, or another service's port?"),
    (httpx.DecodingError, "answers with damaged gzip data ({error}); check the proxy in between."),
    (httpx.InvalidURL, "is not a usable address ({error})."),
    (UnicodeError, "has a host name that cannot be looked up ({error})."),
    (httpx.ConnectError, "cannot be connected to ({error}); check address and port."),
    (httpx.NetworkError, "closed the connection while answering ({error}); it may have crashed or been restarted."),
    (Exception, "cannot be read ({error})."),
)
# What lies beneath a ConnectError says more than the error itself.
_CAUSES: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, "has a certificate that cannot be verified ({error}); set SSL_CERT_FILE to its CA."),
    (ssl.SSLError, "fails at TLS ({error}); is it http rather than https?"),
    (socket.gaierror, "cannot be found: its host name does not resolve; check the spelling and DNS."),
    (
        ConnectionRefusedError,
        "refuses the connection: nothing listens there; is the engine up, and is the port right "
        "(vLLM 8000, SGLang 30000 by default)?",
    ),
)


def _transport_reason(error: BaseException, timeout: float) -> str:
    """The failure as a predicate to the target's name."""
    beneath = cause_reason(error) if isinstance(error, httpx.ConnectError | OSError) else None
    if beneath is not None:
        return beneath
    reason = next(reason for kind, reason in _REASONS if isinstance(error, kind))
    return reason.format(error=brief(error), timeout=timeout, half=timeout / 2)


def cause_reason(error: BaseException) -> str | None:
    """What lies beneath a failed connection: certificate, TLS, name, refused; None if it is none of them."""
    for cause in causes(error):
        for kind, reason in _CAUSES:
            if isinstance(cause, kind):
                return reason.format(error=brief(cause))
    return None


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, nearest first. httpcore hides the cause ("from None"), the context still has it."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for part in error.exceptions:
                yield from causes(part)
        error = error.__cause__ or error.__context__


def brief(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__)[:200]


def public_url(url: str) -> str:
    """The URL without user and password."""
    return re.sub(r"^([a-zA-Z][a-zA-Z0-9+.-]*://)?[^/?#]*@", r"\1", url)


class HttpSource:
    """One engine's /metrics. `address` as in normalise_url, `headers` are added to every request.

    `parse` should be a parser of its own (PageParser remembers the series of its target). UsageError at once for an
    address or header that can never work.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        address: str,
        parse: ParsePage,
        *,
        timeout: float = 5.0,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_PAGE_BYTES,
        name: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        found = normalise_url(address)
        self.target = Target(name or found.name, public_url(found.metrics_url))
        self.address = found
        self._client, self._parse = client, parse
        self._timeout, self._max_bytes, self._clock = timeout, max_bytes, clock
        self._headers = dict(headers or {})
        try:
            httpx.Headers(self._headers)
        except (UnicodeError, TypeError):
            raise UsageError("a header holds characters that HTTP cannot carry: use ASCII only.") from None

    async def fetch(self) -> bytes:
        """The page as served, decompressed. Raises TargetError."""
        return await fetch_page(
            self._client,
            self.address.metrics_url,
            timeout=self._timeout,
            max_bytes=self._max_bytes,
            headers=self._headers,
            name=self.target.name,
        )

    def read(self, at: float, body: bytes) -> Scrape:
        """A fetched page as a Scrape; `error` is set if it is no page of an engine. Never raises."""
        return to_scrape(self.target, at, decode_page(body), self._parse)

    async def scrape(self) -> Scrape:
        """One fetch, never retried. `at` is when the answer was complete: a busy engine makes its page just before."""
        try:
            body = await self.fetch()
        except TargetError as error:
            return Scrape(self.target, self._clock(), error=str(error))
        return self.read(self._clock(), body)

    async def get_json(self, path: str) -> object | None:
        """Configuration at `path` below the engine's root ("/server_info"); None if unusable. Never raises."""
        url = f"{self.address.root_url}/{path.lstrip('/')}"
        headers = {"Accept": "application/json", **self._headers}
        timeout = min(self._timeout, JSON_TIMEOUT_SECONDS)
        try:
            body = await fetch_page(self._client, url, timeout=timeout, max_bytes=MAX_JSON_BYTES, headers=headers)
            found: object = json.loads(body)
        except (TargetError, ValueError, RecursionError):
            return None
        return found
