"""Whatever a server says: one sentence that names it and what to do, exit code 3, no traceback."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest
from ran import Ran

from .conftest import FLEET_END, PREEMPTING, Proxy, bare, respond
from .servers import free_port

Handler = Callable[[BaseHTTPRequestHandler], None]
Diagnose = Callable[..., Ran]
AT = bare(PREEMPTING).times[-1]


def says(body: bytes | Mapping[str, Any], status: int = 200, length: int | None = None) -> Handler:
    """A handler that answers everything alike."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    def handle(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"]))
        respond(request, raw, status, length)

    return handle


def failed(kind: str, error: str) -> dict[str, str]:
    return {"status": "error", "errorType": kind, "error": error}


def result(series: list[Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "vector", "result": series}}


def hangs(request: BaseHTTPRequestHandler) -> None:
    time.sleep(1.0)


def huge(request: BaseHTTPRequestHandler) -> None:
    """50 MB of a valid answer."""
    request.rfile.read(int(request.headers["Content-Length"]))
    one = json.dumps({"metric": {"__name__": "vllm:num_requests_running", "x": "y" * 1000}, "value": [1, "1"]})
    respond(request, json.dumps(result([])).encode()[:-3] + (one + ",").encode() * 48_000)


ANSWERS: dict[str, tuple[Handler, str]] = {
    "400": (
        says(failed("bad_data", "1:9: parse error"), 400),
        "(bad_data): 1:9: parse error. It cannot read the query",
    ),
    "401": (says(b"no org id", 401), "401 Unauthorized: no org id. It keeps several tenants; pass --tenant NAME."),
    "403": (says(b"", 403), "answers 403 Forbidden. Access is not allowed"),
    "404": (says(b"404 page not found", 404), "There is no query API at this path; servers behind a prefix need it"),
    "413": (says(b"<html>too large</html>", 413), "The query is too long for the proxy in front"),
    "422": (says(failed("execution", "out of memory"), 422), "(execution): out of memory. It could not run the query"),
    "422 limit": (
        says(failed("execution", "too many samples"), 422),
        "shorten --window or narrow it down with --match",
    ),
    "429": (says(b"", 429), "It limits the rate of queries"),
    "500": (says(failed("internal", "tsdb closed"), 500), "(internal): tsdb closed. It failed inside"),
    "503": (says(failed("timeout", "query timed out"), 503), "(timeout): query timed out. It is overloaded"),
    "504": (says(b"<html>", 504), "A proxy in front of it got no answer in time"),
    "302": (says(b"", 302), "answers 302 Found"),
    "truncated": (says(json.dumps(result([{"metric": {}}])).encode()[:40]), "answers with JSON that is cut off"),
    "cut off": (says(b'{"status":"success"', length=9000), "breaks off or does not speak HTTP"),
    "html": (says(b"<html>Grafana</html>"), "answers with an HTML page instead of a result"),
    "empty body": (says(b""), "answers with nothing instead of a result"),
    "other json": (says({"status": "success", "data": {}}), "answers with JSON that is no answer to a query"),
    "a number": (says(b"17"), "answers with JSON that is cut off"),
    "error with 200": (says(failed("execution", "boom")), "answers 200 OK (execution): boom"),
    "wrong shapes": (says(result([{"metric": {"a": 1}, "value": "x"}])), "JSON that is no answer to a query"),
    "nothing": (says(result([])), "has no sample of anything in the 60 minutes before that time: is --at within"),
    "50 MB": (huge, "answers with more than 32 MiB: narrow it down with --match, or shorten --window."),
    "hangs": (hangs, "gave no answer within 0.4 s: it is overloaded, or the window is long; raise --timeout"),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_one_sentence(diagnose: Diagnose, serve: Callable[..., str], kind: str) -> None:
    handler, words = ANSWERS[kind]
    url = serve(handler)
    ran = diagnose("--prometheus", url, "--timeout", "400ms" if kind == "hangs" else "9s")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"diagnose: {url.removeprefix('http://')} ") and ran.err.count("\n") == 1
    assert words in ran.err


def test_server_down(diagnose: Diagnose) -> None:
    ran = diagnose("--prometheus", f"http://me:secret@127.0.0.1:{free_port()}")
    assert ran.code == 3 and "refuses the connection: nothing listens there; is it up" in ran.err
    assert "secret" not in ran.err and ran.err.count("\n") == 1
    ran = diagnose("--prometheus", "https://no-such-host.invalid")
    assert ran.code == 3 and "cannot be found: its host name does not resolve" in ran.err


def test_real_servers_refuse_bad_matchers(diagnose: Diagnose, servers: Mapping[str, str]) -> None:
    for url in servers.values():
        ran = diagnose("--prometheus", url, "--match", "job=", "--at", AT)
        assert ran.code == 3 and "--match" in ran.err and ran.err.count("\n") == 1


def test_why_there_is_nobody(diagnose: Diagnose, servers: Mapping[str, str]) -> None:
    url = servers["prometheus"]
    ran = diagnose("--prometheus", url, "--match", 'job="none"', "--at", AT)
    assert ran.code == 3 and "engines (" in ran.err and 'but none with --match job="none".' in ran.err
    ran = diagnose("--prometheus", url, "--at", "2020-01-01T00:00:00Z")
    assert ran.code == 3 and "has no sample of anything" in ran.err and "right time zone" in ran.err


def test_others_but_no_engine(diagnose: Diagnose, serve: Callable[..., str]) -> None:
    def handle(request: BaseHTTPRequestHandler) -> None:
        form = httpx.QueryParams(request.rfile.read(int(request.headers["Content-Length"])).decode())
        found = [{"metric": {}, "value": [1, "12"]}] if form["query"].startswith("count") else []
        respond(request, json.dumps(result(found)).encode())

    ran = diagnose("--prometheus", serve(handle))
    assert ran.code == 3 and "scrapes 12 targets, but has no series of vLLM or SGLang" in ran.err


@pytest.mark.parametrize("lost", ["null", "NaN", "missing"])
def test_holes_and_nan_are_not_healthy(
    diagnose: Diagnose, serve: Callable[..., str], servers: Mapping[str, str], lost: str
) -> None:
    """The queue gauges without usable values: never "no bottleneck"."""

    def change(answer: dict[str, Any], query: str) -> None:
        for one in answer["data"]["result"]:
            if "values" in one and one["metric"]["__name__"].startswith("vllm:num_requests"):
                kept = [] if lost == "missing" else one["values"]
                one["values"] = [[at, None if lost == "null" else "NaN"] for at, _ in kept]

    url = serve(Proxy(servers["prometheus"], change=change).handle)
    words = ("--match", f'instance="{PREEMPTING}"', "--at", AT, "--window", "30s", "--format", "jsonl")
    ran = diagnose("--prometheus", url, *words)
    (found,) = map(json.loads, ran.out.splitlines())
    assert ran.code in (1, 3) and found["verdict"]["bottleneck"] == "unknown"


def test_one_batch_that_fails_costs_only_its_engines(diagnose: Diagnose, serve: Callable[..., str], fleet: str) -> None:
    """The first query (two engines) is answered, the second is not."""
    ranges: list[str] = []

    def handle(request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        query = httpx.QueryParams(body.decode())["query"]
        if query.startswith("{") and "rank:diagnoser" not in query:
            ranges.append(query)
            if len(ranges) > 1:
                return respond(request, json.dumps(failed("internal", "disk gone")).encode(), 500)
        answer = httpx.post(fleet + request.path, data=dict(httpx.QueryParams(body.decode())), trust_env=False)
        return respond(request, answer.content)

    ran = diagnose("--prometheus", serve(handle), "--at", FLEET_END, "--window", "30s", "--format", "jsonl")
    found = {one["engine"]["target"]: one["verdict"]["bottleneck"] for one in map(json.loads, ran.out.splitlines())}
    assert sorted(found.values()).count("unknown") == 3 and len(found) == 5
    assert "disk gone" in ran.err and "It was asked for 3 engines, which are unknown." in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("--at", "soon"),
        ("--at", "2026-13-01 00:00"),
        ("--at", "9999999999"),
        ("--at", "2026-11-29"),
        ("--tz", "Mars/Base"),
        ("--bearer-file", "/nowhere"),
        ("--ca", "/nowhere"),
        ("--key", __file__),
        ("--cert", __file__),
        ("--ca", __file__),
        ("--header", "no colon"),
        ("--window", "0"),
        ("localhost:8000",),
    ],
)
def test_usage_errors(diagnose: Diagnose, words: tuple[str, ...]) -> None:
    ran = diagnose("--prometheus", "http://127.0.0.1:9", *words)
    assert (ran.code, ran.out) == (64, "")
    assert ran.err.startswith("diagnose: ") and ran.err.count("\n") == 1
