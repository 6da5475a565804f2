"""HTTP fetching: against httpx's mock transport, and against a real server that misbehaves in every way we know."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
import pytest

from diagnoser.errors import PageError, TargetError, UnreachableError, UsageError
from diagnoser.sources.exposition import PageParser
from diagnoser.sources.http import HttpSource, fetch_page, normalise_url, open_client

T = TypeVar("T")
PAGE = b'vllm:num_requests_waiting{engine="0"} 3\n'
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def source(client: httpx.AsyncClient, address: str, **options: Any) -> HttpSource:
    parser = PageParser(["vllm:num_requests_waiting", "process_start_time_seconds"])
    return HttpSource(client, address, parser.parse, clock=lambda: 17.0, **options)


# ------------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("text", "name", "metrics_url", "root_url"),
    [
        ("gpu-7:8000", "gpu-7:8000", "http://gpu-7:8000/metrics", "http://gpu-7:8000"),
        (" localhost:30000 ", "localhost:30000", "http://localhost:30000/metrics", "http://localhost:30000"),
        ("http://gpu-7:8000", "gpu-7:8000", "http://gpu-7:8000/metrics", "http://gpu-7:8000"),
        ("http://gpu-7:8000/", "gpu-7:8000", "http://gpu-7:8000/metrics", "http://gpu-7:8000"),
        ("http://gpu-7:8000/metrics", "gpu-7:8000", "http://gpu-7:8000/metrics", "http://gpu-7:8000"),
        ("https://gw/a/metrics", "gw/a/metrics", "https://gw/a/metrics", "https://gw/a"),
        ("https://gw/a/metrics?x=1#y", "gw/a/metrics", "https://gw/a/metrics?x=1", "https://gw/a"),
        ("http://gw/custom", "gw/custom", "http://gw/custom", "http://gw"),
        ("[::1]:8000", "[::1]:8000", "http://[::1]:8000/metrics", "http://[::1]:8000"),
        ("http://me:pw@gw:1", "gw:1", "http://me:pw@gw:1/metrics", "http://me:pw@gw:1"),
    ],
)
def test_addresses(text: str, name: str, metrics_url: str, root_url: str) -> None:
    assert normalise_url(text) == (name, metrics_url, root_url)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "http://",
        ":8000",
        "::1:8000",
        "host:port",
        "host:99999",
        "ho st:80",
        "ftp://host/metrics",
        "unix:///run/x",
    ],
)
def test_addresses_that_cannot_be_used(text: str) -> None:
    with pytest.raises(UsageError, match="host:port"):
        normalise_url(text)


def test_password_is_never_shown() -> None:
    for text in ("ftp://me:secret@host/x?to=http://a", "http://me:secret@", "me:secret@host:port"):
        with pytest.raises(UsageError) as caught:
            normalise_url(text)
        assert "secret" not in str(caught.value)

    async def run() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(lambda request: httpx.Response(404))) as client:
            made = source(client, "http://me:secret@host:1/metrics")
            assert made.target.url == "http://host:1/metrics"
            assert "secret" not in repr(await made.scrape())
            with pytest.raises(TargetError) as caught:
                await fetch_page(client, "http://me:secret@host:1/metrics", timeout=1)
            assert "secret" not in str(caught.value)

    asyncio.run(run())


# ------------------------------------------------------------------------------------- mock transport


def answered(handler: Callable[[httpx.Request], httpx.Response], **options: Any) -> Any:
    async def run() -> Any:
        async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as client:
            return await source(client, "http://gpu-7:8000", **options).scrape()

    return asyncio.run(run())


def test_a_page_becomes_samples() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, content=PAGE)

    scrape = answered(handler, headers={"Authorization": "Bearer t"})
    assert (scrape.error, scrape.at, scrape.target.name) == (None, 17.0, "gpu-7:8000")
    assert [sample.value for sample in scrape.samples] == [3]
    assert str(seen[0].url) == "http://gpu-7:8000/metrics"
    assert seen[0].headers["Accept"] == "text/plain;version=0.0.4"
    assert seen[0].headers["Accept-Encoding"] == "gzip"
    assert seen[0].headers["Authorization"] == "Bearer t"
    assert len(seen) == 1


def test_credentials_in_the_address_are_sent() -> None:
    seen: list[str] = []

    async def run() -> None:
        def handler(request: httpx.Request) -> httpx.Response:
            seen.append(request.headers["Authorization"])
            return httpx.Response(200, content=PAGE)

        async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as client:
            assert (await source(client, "http://me:pw@host:1").scrape()).error is None

    asyncio.run(run())
    assert seen == ["Basic bWU6cHc="]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (401, "--header 'Authorization: Bearer TOKEN'"),
        (403, "not allowed"),
        (404, "--enable-metrics"),
        (500, "log of the engine"),
        (503, "starting"),
        (502, "proxy"),
        (418, "refused"),
        (204, "comes with 200"),
        (304, "redirects are not followed"),
        (599, "fails"),
    ],
)
def test_status_codes(code: int, words: str) -> None:
    error = answered(lambda request: httpx.Response(code)).error
    assert error.startswith(f"gpu-7:8000 answers {code}") and words in error


@pytest.mark.parametrize("location", ["https://sso/login?next=/", "/login", "http://me:secret@x/"])
def test_redirects_are_told_not_followed(location: str) -> None:
    error = answered(lambda request: httpx.Response(302, headers={"Location": location})).error
    assert error.startswith("gpu-7:8000 redirects to ") and "secret" not in error


def test_redirect_to_nonsense() -> None:
    assert "Invalid URL" in answered(lambda request: httpx.Response(302, headers={"Location": "http://a:b"})).error


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_encodings_nobody_asked_for(coding: str) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"x"

    error = answered(lambda request: httpx.Response(200, content=body(), headers={"Content-Encoding": coding})).error
    assert repr(coding) in error


def exceptions_of_httpx() -> list[type[Exception]]:
    found = [kind for kind in vars(httpx).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(found) > 25
    return found


@pytest.mark.parametrize("kind", exceptions_of_httpx())
def test_every_exception_of_httpx_becomes_one_of_ours(kind: type[Exception]) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if issubclass(kind, httpx.HTTPStatusError):
            raise kind("boom", request=request, response=httpx.Response(500))
        if issubclass(kind, httpx.StreamError) and kind is not httpx.StreamError:
            raise kind()  # type: ignore[call-arg]
        raise kind("boom")

    scrape = answered(handler)
    assert scrape.samples == ()
    assert scrape.error.startswith("gpu-7:8000 ") and scrape.error.endswith((".", "?"))
    assert "{" not in scrape.error


@pytest.mark.parametrize("error", [OSError("boom"), UnicodeError("label too long"), ssl.SSLError("boom")])
def test_other_errors_of_a_fetch(error: Exception) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise error

    assert answered(handler).error.startswith("gpu-7:8000 ")


def test_header_that_http_cannot_carry() -> None:
    with pytest.raises(UsageError, match="ASCII"):
        source(httpx.AsyncClient(), "host:1", headers={"X-Name": "é"})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html><body>Sign in</body></html>\n", "HTML"),
        (b"", "empty"),
        (b"node_cpu_seconds_total 1\n", "node_exporter"),
        (b"\x1f\x8b\x00\xff", "not Prometheus text"),
    ],
)
def test_pages_that_are_none(body: bytes, words: str) -> None:
    scrape = answered(lambda request: httpx.Response(200, content=body))
    assert words in scrape.error and scrape.samples == ()


def test_invalid_utf8_costs_its_own_lines_only() -> None:
    scrape = answered(lambda request: httpx.Response(200, content=b'vllm:x{a="\xff"} 1\n' + PAGE))
    assert (scrape.error, len(scrape.samples), scrape.bad_lines) == (None, 1, 1)


# ------------------------------------------------------------------------------------- get_json


def configuration(response: httpx.Response | Exception, address: str = "http://gpu-7:8000/metrics") -> object:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        if isinstance(response, Exception):
            raise response
        return response

    async def run() -> object:
        async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as client:
            return await source(client, address).get_json("/server_info")

    found = asyncio.run(run())
    assert seen == [address.removesuffix("/metrics") + "/server_info"]
    return found


def test_configuration() -> None:
    assert configuration(httpx.Response(200, json={"a": [1]})) == {"a": [1]}
    assert configuration(httpx.Response(200, json=1), "https://gw/model-a/metrics") == 1


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, content=b"<html>"),
        httpx.Response(200, content=b"\xff\xfe{"),
        httpx.Response(200, content=b"[" * 100_000),
        httpx.Response(200, content=b"1" * 10_000),
        httpx.Response(200, content=json.dumps("x" * 4_200_000).encode()),
        httpx.Response(404, json={}),
        httpx.Response(302, headers={"Location": "/x"}, json={}),
        httpx.ConnectError("boom"),
    ],
)
def test_unusable_configuration_is_none(response: httpx.Response | Exception) -> None:
    assert configuration(response) is None


# ------------------------------------------------------------------------------------- a real server


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[str]:
    """Yields host:port of a server that reads one request and then does `serve`."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def run_with(serve: Serve, use: Callable[[httpx.AsyncClient, str], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with serving(serve) as address, open_client() as client:
            return await use(client, address)

    return asyncio.run(run())


def failure(serve: Serve, *, timeout: float = 2.0, **options: Any) -> TargetError:
    async def use(client: httpx.AsyncClient, address: str) -> TargetError:
        with pytest.raises(TargetError) as caught:
            await source(client, address, timeout=timeout, **options).fetch()
        assert str(caught.value).startswith(address + " ")
        return caught.value

    return run_with(serve, use)


def sends(head: str, *chunks: bytes, length: int | None = None) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = sum(map(len, chunks)) if length is None else length
        writer.write(f"HTTP/1.1 {head}\r\nContent-Length: {size}\r\n\r\n".encode())
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()

    return serve


def test_plain_and_gzip_pages_over_a_real_connection() -> None:
    async def use(client: httpx.AsyncClient, address: str) -> Any:
        return await source(client, address).scrape()

    packed = gzip.compress(PAGE)
    for serve in (sends("200 OK", PAGE), sends("200 OK\r\nContent-Encoding: gzip", packed[:9], packed[9:])):
        scrape = run_with(serve, use)
        assert (scrape.error, [sample.value for sample in scrape.samples]) == (None, [3])


def test_connection_refused() -> None:
    async def run() -> None:
        async with serving(sends("200 OK")) as address:
            pass
        async with open_client() as client:
            with pytest.raises(UnreachableError, match=f"{address} refuses the connection: nothing listens there"):
                await source(client, address).fetch()

    asyncio.run(run())


def test_host_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    async def run() -> None:
        async with open_client() as client:
            with pytest.raises(UnreachableError, match="no-such-host:8000 cannot be found"):
                await source(client, "no-such-host:8000").fetch()

    asyncio.run(run())


def test_https_to_a_plain_port() -> None:
    async def use(client: httpx.AsyncClient, address: str) -> str:
        with pytest.raises(UnreachableError) as caught:
            await source(client, f"https://{address}").fetch()
        return str(caught.value)

    async def run() -> str:
        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(5)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        async with server, open_client() as client:
            return await use(client, f"127.0.0.1:{server.sockets[0].getsockname()[1]}")

    assert "fails at TLS" in asyncio.run(run())


async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"#")
        await writer.drain()
        await asyncio.sleep(0.01)


async def drips_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-A: b\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("serve", [hangs, drips, drips_headers])
def test_slow_server_is_cut_at_the_deadline(serve: Serve) -> None:
    error = failure(serve, timeout=0.1)
    assert isinstance(error, UnreachableError) and "no complete answer within 0.1 s" in str(error)


def test_hundred_megabytes_are_not_read() -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
        for _ in range(1600):
            writer.write(b"# a line\n" * 7281)
            await writer.drain()
            sent += 7281 * 9

    error = failure(serve, max_bytes=2 * 2**20)
    assert isinstance(error, PageError) and "more than 2 MiB" in str(error)
    assert sent < 30_000_000


def test_gzip_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(b"#" * 100_000_000)
    assert len(bomb) < 120_000
    error = failure(sends("200 OK\r\nContent-Encoding: gzip", bomb))
    assert isinstance(error, PageError) and "more than 32 MiB" in str(error)


def test_damaged_gzip() -> None:
    assert "damaged gzip" in str(failure(sends("200 OK\r\nContent-Encoding: gzip", PAGE)))


def test_page_that_breaks_off() -> None:
    error = failure(sends("200 OK", PAGE, length=5000))
    assert isinstance(error, UnreachableError) and "breaks off" in str(error)


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...


async def speaks_another_protocol(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")


@pytest.mark.parametrize("serve", [says_nothing, speaks_another_protocol])
def test_no_http_at_all(serve: Serve) -> None:
    assert "does not speak HTTP" in str(failure(serve))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("302 Found\r\nLocation: /login", "redirects to http://127.0.0.1:"),
        ("401 Unauthorized", "answers 401 Unauthorized: it needs a token"),
        ("404 Not Found", "SGLang has /metrics only with --enable-metrics"),
        ("500 Internal Server Error", "answers 500 Internal Server Error"),
    ],
)
def test_refusals_over_a_real_connection(head: str, words: str) -> None:
    assert words in str(failure(sends(head, b"<html>no</html>")))
