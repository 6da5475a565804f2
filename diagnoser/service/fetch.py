"""Pages by aiohttp: a fifth of the CPU that httpx takes a GET (bench/poll.py), with the same refusals and sentences."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress

import aiohttp
import httpx
from yarl import URL

from diagnoser import __version__
from diagnoser.errors import PageError, UnreachableError, UsageError
from diagnoser.sources.base import MAX_PAGE_BYTES, ParsePage
from diagnoser.sources.http import HEADERS, HttpSource, brief, cause_reason, status_reason

_GZIP = 31


def open_session() -> aiohttp.ClientSession:
    """One session for all targets. It ignores HTTP_PROXY, .netrc and cookies, and never decompresses by itself."""
    # uvicorn closes idle connections after 5 s: polling every 5 s would race with it, so we close earlier.
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=4, keepalive_timeout=3.0, ttl_dns_cache=10)
    headers = {**HEADERS, "User-Agent": f"diagnose/{__version__}"}
    return aiohttp.ClientSession(
        connector=connector,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=None),
    )


class AioSource(HttpSource):
    """An HttpSource whose pages come through a shared session; its rare configuration queries go through `client`.

    `secrets` gives headers anew for every page, so that a rotated token works at once. It may raise UsageError.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        client: httpx.AsyncClient,
        address: str,
        parse: ParsePage,
        *,
        timeout: float = 5.0,
        headers: Callable[[], Mapping[str, str]] = dict,
        max_bytes: int = MAX_PAGE_BYTES,
        name: str = "",
    ) -> None:
        super().__init__(client, address, parse, timeout=timeout, max_bytes=max_bytes, name=name)
        self._session, self._secrets = session, headers
        self._url = URL(self.address.metrics_url, encoded=True)
        # Half of the time must do for the connection, so that an address nobody answers is told from a slow page.
        self._limits = aiohttp.ClientTimeout(total=None, sock_connect=timeout / 2)

    async def fetch(self) -> bytes:
        """The page as served, decompressed. Raises TargetError."""
        name, timeout = self.target.name, self._timeout
        try:
            self._headers = dict(self._secrets())
            async with asyncio.timeout(timeout):
                return await self._get()
        except UsageError as error:
            raise UnreachableError(f"{name} was not asked: {error}") from None
        except aiohttp.ConnectionTimeoutError:
            reason = f"cannot be connected to within {timeout / 2:g} s: host down, wrong address or a firewall."
            raise UnreachableError(f"{name} {reason}") from None
        except TimeoutError:
            reason = f"gave no complete answer within {timeout:g} s: the engine hangs or is overloaded."
            raise UnreachableError(f"{name} {reason}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UnreachableError(f"{name} {_reason(error)}") from error

    async def _get(self) -> bytes:
        asked = self._session.get(self._url, headers=self._headers, allow_redirects=False, timeout=self._limits)
        async with asked as response:
            if response.status != 200:
                raise UnreachableError(f"{self.target.name} {_status(response)}")
            coding = response.headers.get("Content-Encoding", "identity").strip().lower()
            if coding not in ("gzip", "x-gzip", "identity", ""):
                reason = f"answers in the encoding {coding!r}, which nobody asked for: switch it off there."
                raise PageError(f"{self.target.name} {reason}")
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > self._max_bytes:
                    raise self._too_large()
        return self._inflated(bytes(body)) if "gzip" in coding else bytes(body)

    def _inflated(self, body: bytes) -> bytes:
        """Never more than the limit, however well it was packed."""
        inflater = zlib.decompressobj(_GZIP)
        try:
            page = inflater.decompress(body, self._max_bytes + 1)
        except zlib.error as error:
            raise UnreachableError(
                f"{self.target.name} answers with damaged gzip data ({error}); check the proxy in between."
            ) from None
        if len(page) > self._max_bytes:
            raise self._too_large()
        if not inflater.eof:
            raise UnreachableError(f"{self.target.name} breaks off within its gzip data; check the proxy in between.")
        return page

    def _too_large(self) -> PageError:
        size = f"{self._max_bytes / 2**20:g} MiB"
        return PageError(f"{self.target.name} answers with more than {size}: this is no metrics page of an engine.")

    async def accepts(self, timeout: float) -> bool:
        """Does its port accept a connection? A tenth of the cost of asking for the page."""
        url = self._url
        with suppress(OSError, ValueError, UnicodeError):
            async with asyncio.timeout(timeout):
                _, writer = await asyncio.open_connection(url.host, url.port)
                writer.close()
                return True
        return False


def _status(response: aiohttp.ClientResponse) -> str:
    to = response.headers.get("Location") if response.status // 100 == 3 else None
    if to:
        with suppress(ValueError):
            to = str(response.url.join(URL(to)))
    return status_reason(response.status, response.reason or "", to)


_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ClientConnectorError, "cannot be connected to ({error}); check address and port."),
    (aiohttp.ServerDisconnectedError, "closed the connection without an answer; it may have crashed or restarted."),
    (aiohttp.ClientPayloadError, "breaks off within its answer ({error}); it may have crashed or been restarted."),
    (aiohttp.ClientResponseError, "does not speak HTTP ({error}); is it https, or another service's port?"),
    (aiohttp.ClientOSError, "closed the connection while answering ({error}); it may have crashed or been restarted."),
    (Exception, "cannot be read ({error})."),
)


def _reason(error: BaseException) -> str:
    """The failure as a predicate to the target's name."""
    beneath = cause_reason(error) if isinstance(error, OSError) else None
    if beneath is not None:
        return beneath
    return next(text for kind, text in _REASONS if isinstance(error, kind)).format(error=brief(error))
