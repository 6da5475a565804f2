"""Restarts, engines that answer no more, and answers that a server gave in part or refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from fleet.recordings_into import PRODUCTS, Loaded, Slim
from prometheus.conftest import KILLED, PREEMPTING, Proxy, bare, respond, serve
from score.scoring import thinned
from story import BOOK

from diagnoser.fleet import Found, fleet
from diagnoser.pipeline import History, diagnose
from diagnoser.replay import scrapes
from diagnoser.served import Wish
from diagnoser.signals.base import signals
from diagnoser.sources.prometheus.access import Access, open_client
from diagnoser.sources.prometheus.api import Server
from diagnoser.sources.recording import RecordedTarget

from .compare import compared
from .conftest import END, EVERY, Wanted, ask
from .differences import LISTED, RESTARTED
from .oracle import Look, said

__all__ = ["serve"]
NAMES = tuple(signal.name for signal in signals())


def restarted() -> RecordedTarget:
    """A process dies after its sixth page; the next one begins its counters at zero a page later."""
    target = thinned(bare(PREEMPTING), EVERY)
    polls = [poll for _, poll in sorted(target._polls.items())]
    first = min(target._polls)
    kept = [*polls[8:14], *polls[:7]]
    return RecordedTarget("restarted", {}, {first + i * EVERY * 1000: poll for i, poll in enumerate(kept)})


@pytest.mark.parametrize("product", PRODUCTS)
def test_counters_that_begin_anew(tmp_path: Path, product: str) -> None:
    """All signals as Python reads them: what a process counted before it died counts, and what the next began with."""
    target = restarted()
    history = History(target.name, 1e9)
    for scrape in scrapes(target):
        history.add(scrape)
    at, window = target.times[-1] + 1.3, 45.0
    with PRODUCTS[product](tmp_path, [Slim(target, {"job": "llm", "instance": target.name})]) as url:
        found = ask(url, Wanted(at, window, step=float(EVERY), names=NAMES, narrow=False))
    got = found.of(target.name, "0")
    (one,) = said(history, Look(product, at, window, float(EVERY)))
    assert got is not None and got[0]["restarts"] == 1 and (got[0]["preemptions"] or 0) >= 0
    differ = list(compared(one, got[0], Look(product, at, window, float(EVERY))))
    assert [str(d) for d in differ if not any(listed.matches(d) for listed in (*LISTED, *RESTARTED))] == []
    stale = [x for x in RESTARTED if x.product == product and not any(x.matches(d) for d in differ)]
    assert stale == []
    (direct,) = diagnose(history.windows(at, window), BOOK)
    assert (got[1].verdict.bottleneck, got[1].verdict.mode) == (direct.verdict.bottleneck, direct.verdict.mode)


@pytest.mark.parametrize("product", PRODUCTS)
def test_an_engine_that_gave_no_page_in_the_window(loaded: Mapping[str, Loaded], product: str) -> None:
    """Known from its last page within the hour; `up` says that it is still scraped and does not answer."""
    found = ask(loaded[product].url, Wanted(END + 1.3, 15.0, step=float(EVERY), match=f'instance="{KILLED}"'))
    (one,) = found.diagnoses
    assert (one.engine.target, one.engine.family, one.scrapes) == (KILLED, "vllm", 0)
    assert (one.verdict.bottleneck, one.verdict.severity) == ("unreachable", "critical")


def test_an_engine_that_is_scraped_no_more_is_not_there(loaded: Mapping[str, Loaded]) -> None:
    found = ask(loaded["prometheus"].url, Wanted(END + 60.0, 15.0, step=float(EVERY)))
    assert found.diagnoses == ()


# ---------------------------------------------------------------- in part


def computed(url: str) -> Found:
    """As the command asks a whole fleet."""

    async def work() -> Found:
        async with open_client(Access(url)) as client:
            return await fleet(Server(client, url), Wish(END + 3.0, 30.0, "", {}), BOOK, "server")

    return asyncio.run(work())


@pytest.fixture
def through(loaded: Mapping[str, Loaded], serve: Callable[..., str]) -> Iterator[Callable[..., str]]:
    """The Prometheus behind a proxy that changes answers."""
    yield lambda change: serve(Proxy(loaded["prometheus"].url, change=change).handle)


def test_a_partial_answer_proves_no_absence(through: Callable[..., str]) -> None:
    def warn(answer: dict[str, Any], query: str) -> None:
        if "waiting" in query:
            answer["warnings"] = ["store 2 did not answer"]

    found = computed(through(warn))
    kinds = {(one.verdict.bottleneck, one.verdict.mode) for one in found.diagnoses}
    assert "none" not in {bottleneck for bottleneck, _ in kinds}
    assert ("unknown", "partial_data") in kinds and "l1" in {bottleneck for bottleneck, _ in kinds}


def test_what_the_server_refuses_is_unknown_and_never_no(
    loaded: Mapping[str, Loaded], serve: Callable[..., str]
) -> None:
    """Without the queue nobody can say that nothing is wrong."""
    proxy = Proxy(loaded["prometheus"].url)

    def refuse(request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers["Content-Length"])
        body = request.rfile.read(length)
        if b"num_requests_waiting" in body or b"num_queue_reqs" in body:
            return respond(request, b'{"status":"error","errorType":"execution","error":"too many samples"}', 422)
        request.rfile = __import__("io").BytesIO(body)
        return proxy.handle(request)

    found = computed(serve(refuse))
    assert {one.verdict.bottleneck for one in found.diagnoses} <= {"unknown", "unreachable"}
    assert "could not be computed" in " ".join(found.said)
