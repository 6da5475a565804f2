"""One instant query: POST /api/v1/query and its JSON. Every failure is one sentence that names the server.

Answer format: https://prometheus.io/docs/prometheus/latest/querying/api/ (status, data.resultType, data.result,
warnings; error and errorType otherwise), plus `isPartial` of a VictoriaMetrics cluster.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any, NamedTuple, TypeVar

import httpx
import msgspec

from diagnoser.errors import ServerError, TooMuchError
from diagnoser.sources.prometheus.access import api_url, server_name
from diagnoser.sources.prometheus.refusals import broken, refusal

T = TypeVar("T")
MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""Longest answer we read, decompressed. Batches aim far below; an answer above is asked for again in parts."""
QUERIES_AT_ONCE = 4


class Series(NamedTuple):
    """One series of an answer: its labels with __name__, and (unix seconds, value) pairs in time order."""

    labels: Mapping[str, str]
    values: Sequence[tuple[float, float]]

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.labels.get("__name__", "")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave. With `warnings` it may be incomplete."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()


class Server:
    """A Prometheus-compatible server behind one client, with a bound on queries at once and on answers."""

    def __init__(
        self, client: httpx.AsyncClient, url: str, *, timeout: float = 30.0, max_bytes: int = MAX_ANSWER_BYTES
    ) -> None:
        self._client, self._url, self._timeout, self._max_bytes = client, api_url(url), timeout, max_bytes
        self._gate = asyncio.Semaphore(QUERIES_AT_ONCE)
        self.name = server_name(self._url)
        self.queries = self.bytes = 0

    async def query(self, promql: str, at: float) -> Answer:
        """The answer at that time. Raises ServerError, or TooMuchError where less would be answered."""
        form = {"query": promql, "time": f"{at:.3f}", "timeout": f"{max(1, round(self._timeout))}s"}
        async with self._gate:
            try:
                async with asyncio.timeout(self._timeout):
                    status, body = await self._post(form)
            except TimeoutError:
                reason = "it is overloaded, or the window is long; raise --timeout, shorten --window or use --match."
                raise ServerError(f"{self.name} gave no answer within {self._timeout:g} s: {reason}") from None
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError) as error:
                raise ServerError(f"{self.name} {broken(error)}") from error
        return self._read(status, body)

    async def _post(self, form: Mapping[str, str]) -> tuple[httpx.Response, bytes]:
        """POST, because a list of engines does not fit into a URL."""
        self.queries += 1
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        limits = httpx.Timeout(self._timeout, connect=min(10.0, self._timeout / 2))
        request = {"data": dict(form), "headers": headers, "timeout": limits, "follow_redirects": False}
        async with self._client.stream("POST", self._url, **request) as response:  # type: ignore[arg-type]
            coding = response.headers.get("Content-Encoding", "identity").strip().lower()
            if coding not in ("gzip", "x-gzip", "identity", ""):
                raise ServerError(f"{self.name} answers in the encoding {coding!r}, which nobody asked for.")
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self._max_bytes:
                    size = f"{self._max_bytes / 2**20:g} MiB"
                    advice = "narrow it down with --match, or shorten --window."
                    raise TooMuchError(f"{self.name} answers with more than {size}: {advice}")
            self.bytes += len(body)
            return response, bytes(body)

    def _read(self, response: httpx.Response, body: bytes) -> Answer:
        if response.status_code != 200:
            raise refusal(self.name, response, _json(body), body)
        try:
            found = _ANSWER.decode(body)
            if found.status != "success" or found.data is None:
                raise self._no_answer(response, body)
            series = tuple(_series(one) for one in found.data.result)
        except (msgspec.MsgspecError, ValueError):
            raise self._no_answer(response, body) from None
        partial = ["the answer is partial (isPartial)"] if found.partial is True else []
        return Answer(series, tuple(dict.fromkeys([*map(str, found.warnings or ()), *partial])))

    def _no_answer(self, response: httpx.Response, body: bytes) -> ServerError:
        data = _json(body)
        if not isinstance(data, dict) or data.get("status") != "success":
            return refusal(self.name, response, data, body)
        what = "is no answer to a query: is this a Prometheus-compatible server?"
        return ServerError(f"{self.name} answers with JSON that {what}")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in their order, or the first error once all are done: a TLS handshake that is cancelled leaks its
    socket in httpcore. Every query ends by its timeout.
    """
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


class _One(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str | None] | None = None
    values: list[tuple[float, str | None]] | None = None


class _Data(msgspec.Struct):
    result: list[_One]


class _Body(msgspec.Struct):
    status: str
    data: _Data | None = None
    warnings: list[Any] | None = None
    partial: bool | None = msgspec.field(default=None, name="isPartial")


_ANSWER = msgspec.json.Decoder(_Body)


def _series(one: _One) -> Series:
    if one.value is not None:  # of vectors there are many, each read once
        at, text = one.value
        return Series(one.metric, ((at, math.nan if text is None else float(text)),))
    labels = {intern(key): intern(value) for key, value in one.metric.items()}
    return Series(labels, [(at, math.nan if value is None else float(value)) for at, value in one.values or ()])
