"""Polling: pages as HttpSource would give them, schedules that nobody disturbs, targets that die and come back."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path

import pytest

from diagnoser.errors import TargetError
from diagnoser.pipeline import wanted_metrics
from diagnoser.service.config_models import Config, TargetGroup
from diagnoser.service.discovery.base import Found
from diagnoser.service.discovery.static import Static
from diagnoser.service.discovery.watch import Watch
from diagnoser.service.fetch import AioSource, open_session
from diagnoser.service.polled import offset
from diagnoser.service.poller import Poller
from diagnoser.service.stats import Stats
from diagnoser.sources.exposition import PageParser
from diagnoser.sources.http import HttpSource, open_client
from service.poll_kit import HEALTHY, address, engine, page, sends, site, until

PAGE = page()
LIMIT = 100_000


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """In a loop of its own."""

    async def whole() -> None:
        await scenario()

    asyncio.run(whole())


# ---------------------------------------------------------------- pages


async def both(target: str, timeout: float = 2.0) -> tuple[bytes | str, bytes | str]:
    """What httpx and aiohttp make of a target: the page, or the sentence."""
    parse = PageParser(wanted_metrics()).parse
    async with open_client() as client, open_session() as session:
        sources = (
            HttpSource(client, target, parse, timeout=timeout, max_bytes=LIMIT),
            AioSource(session, client, target, parse, timeout=timeout, max_bytes=LIMIT),
        )
        found = [await asyncio.gather(source.fetch(), return_exceptions=True) for source in sources]
    first, second = (str(one) if isinstance(one, TargetError) else one for (one,) in found)
    assert isinstance(first, bytes | str) and isinstance(second, bytes | str), (first, second)
    return first, second


@pytest.mark.parametrize(
    "handle",
    [
        sends(PAGE),
        sends(gzip.compress(PAGE), Content_Encoding="gzip"),
        sends(PAGE, 404),
        sends(PAGE, 503),
        sends(b"", 204),
        sends(b"", 302, Location="http://user:secret@elsewhere:1/metrics"),
        sends(b"", 307, Location="/other"),
        sends(b"x" * (LIMIT + 1)),
        sends(PAGE, Content_Encoding="br"),
        sends(gzip.compress(gzip.compress(PAGE)), Content_Encoding="gzip, gzip"),
    ],
    ids=["page", "gzip", "404", "503", "204", "redirect", "relative", "large", "brotli", "twice"],
)
def test_the_same_as_by_httpx(handle: Callable[[BaseHTTPRequestHandler], None]) -> None:
    with site(handle) as target:
        first, second = asyncio.run(both(target))
    assert first == second and "secret" not in str(second)


@pytest.mark.parametrize(
    ("handle", "words"),
    [
        (sends(gzip.compress(b"x" * 50_000_000), Content_Encoding="gzip"), "more than 0.0953674 MiB"),
        (sends(b"no gzip at all", Content_Encoding="gzip"), "damaged gzip data"),
        (sends(gzip.compress(PAGE)[:-20], Content_Encoding="gzip"), "breaks off"),
        (sends(PAGE, length=len(PAGE) + 10), "breaks off within its answer"),
        (lambda request: request.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n"), "does not speak HTTP"),
        (lambda request: setattr(request, "close_connection", True), "closed the connection"),
    ],
    ids=["bomb", "damaged", "cut", "short", "ssh", "closed"],
)
def test_bad_answers_are_sentences(handle: Callable[[BaseHTTPRequestHandler], None], words: str) -> None:
    with site(handle) as target:
        _, second = asyncio.run(both(target))
    assert isinstance(second, str) and second.startswith(target) and words in second


def test_connections_that_fail() -> None:
    refused = asyncio.run(both("127.0.0.1:9"))
    assert refused[0] == refused[1] and "refuses the connection" in str(refused[1])
    unknown = asyncio.run(both("no-such-host.invalid:8000"))
    assert unknown[0] == unknown[1] and "does not resolve" in str(unknown[1])
    with site(sends(PAGE)) as target:
        assert "TLS" in str(asyncio.run(both(f"https://{target}"))[1])


def test_a_target_that_hangs_is_given_up() -> None:
    release = threading.Event()
    with site(lambda request: bool(release.wait(30)) and None) as target:
        _, second = asyncio.run(both(target, timeout=0.2))
        release.set()
    assert "no complete answer within 0.2 s" in str(second)


# ---------------------------------------------------------------- schedules


def test_a_thousand_targets_are_spread_over_their_interval() -> None:
    turns = sorted(offset(f"10.0.{i // 250}.{i % 250}:8000", 1.0, 12345.6) for i in range(1000))
    assert turns[0] >= 0 and turns[-1] < 1
    assert max(late - early for early, late in pairwise(turns)) < 0.02
    assert offset("a:1", 5.0, 100.0) == pytest.approx((offset("a:1", 5.0, 0.0) - 100.0) % 5.0), "always the same place"


@asynccontextmanager
async def polling(*targets: str, **settings: object) -> AsyncIterator[tuple[Poller, Callable[..., Awaitable[None]]]]:
    """A poller of these targets, and a way to give it others."""
    config = Config.model_validate({"window": "1s", "keep": "2s"})
    async with open_session() as session, open_client() as client:
        poller = Poller(config, Stats(), session, client)

        async def use(*others: str, labels: dict[str, str] | None = None, **changed: object) -> None:
            wanted = {"interval": "50ms", "timeout": "1s", **settings, **changed, "static": list(others)}
            group = TargetGroup.model_validate(wanted)
            watch = Watch(group, Static(others))
            watch.found = tuple(Found(one, labels or {}) for one in others)
            await poller.use([watch], config)

        await use(*targets)
        try:
            yield poller, use
        finally:
            await poller.stop()


def test_one_target_that_hangs_delays_nobody() -> None:
    release = threading.Event()

    async def scenario(good: str, hung: str) -> None:
        async with polling(good, hung) as (poller, _):
            stats = poller.targets[good].engine
            await until(lambda: stats.pages >= 30 and poller.targets[hung].engine.polls >= 1)
            seen = {state.name: state for state in poller.states()}
            assert seen[good].healthy and not seen[hung].healthy
            assert "no complete answer" in seen[hung].last_error
            kept = poller.stats.targets
            assert kept[hung].overrun >= 10 and kept[good].overrun == 0

    with engine() as mock, site(lambda request: bool(release.wait(30)) and None) as hung:
        run(lambda: scenario(address(mock), hung))
        release.set()


def test_a_dead_target_is_only_knocked_at_and_seen_in_the_interval_after_its_return() -> None:
    async def scenario(name: str) -> None:
        async with polling(name) as (poller, _):
            one, stats = poller.targets[name], poller.stats
            await until(lambda: one.engine.pages >= 3)
            mock.stop()
            await until(lambda: stats.target(name).probes >= 5)
            assert one.state.healthy is False and "refuses the connection" in one.state.last_error
            failed = poller.windows(one.engine.last.at, 1.0)[0].failures  # type: ignore[union-attr]
            assert len(failed) >= 5, "every knock is a failed poll"
            pages = one.engine.pages
            with engine(port=int(name.partition(":")[2])):
                polls = one.engine.polls
                await until(lambda: one.engine.pages > pages)
                assert one.engine.polls - polls <= 2
                assert one.state.healthy

    with engine() as mock:
        run(lambda: scenario(address(mock)))


def test_a_port_that_accepts_but_answers_503_is_asked_every_interval() -> None:
    status = [503]

    def handle(request: BaseHTTPRequestHandler) -> None:
        sends(PAGE, status[0])(request)

    async def scenario(name: str) -> None:
        async with polling(name) as (poller, _):
            one = poller.targets[name]
            await until(lambda: one.failures >= 5)
            status[0] = 200
            await until(lambda: one.state.healthy)
            assert poller.stats.target(name).probes == 0

    with site(handle) as name:
        run(lambda: scenario(name))


def test_tokens_are_read_anew_and_a_missing_one_stops_only_its_target(tmp_path: Path) -> None:
    token, seen = tmp_path / "token", set[str | None]()
    token.write_text("one\n")

    def handle(request: BaseHTTPRequestHandler) -> None:
        seen.add(request.headers["Authorization"])
        sends(PAGE)(request)

    async def scenario(name: str) -> None:
        async with polling(name, bearer_file=str(token), headers={"X-Own": "1"}) as (poller, _):
            await until(lambda: "Bearer one" in seen)
            token.write_text("two\n")
            await until(lambda: "Bearer two" in seen)
            token.unlink()
            await until(lambda: not poller.targets[name].state.healthy)
            error = poller.targets[name].last_error
            assert "was not asked" in error and "cannot be read" in error and "two" not in error

    with site(handle) as name:
        run(lambda: scenario(name))


# ---------------------------------------------------------------- changes of the list


def test_who_stays_keeps_the_pages() -> None:
    async def scenario(a: str, b: str) -> None:
        async with polling(a) as (poller, use):
            await until(lambda: poller.targets[a].engine.pages >= 5)
            first = poller.targets[a]
            await use(a, b, labels={"pod": "p"})
            assert poller.targets[a] is not first, "another entry"
            assert poller.targets[a].engine.history is first.engine.history and poller.targets[a].engine.pages >= 5
            assert poller.targets[a].state.labels == {"pod": "p"}
            second = poller.targets[a]
            await use(a, b, labels={"pod": "q"})
            assert poller.targets[a] is second and second.state.labels == {"pod": "q"}, "the same entry"
            await use(a, interval="70ms")
            assert set(poller.targets) == {a} and set(poller.stats.targets) == {a}
            pages = poller.targets[a].engine.pages
            await until(lambda: poller.targets[a].engine.pages > pages + 3)
            assert poller.targets[a].engine.history is first.engine.history

    with engine() as one, engine(HEALTHY) as two:
        run(lambda: scenario(address(one), address(two)))


def test_pages_are_bounded(tmp_path: Path) -> None:
    async def scenario(name: str) -> None:
        async with polling(name, interval="10ms") as (poller, _):
            one = poller.targets[name]
            await until(lambda: one.engine.pages >= 200)
            (window,) = one.engine.history.windows(1e12, 1e12)
            assert len(window.snapshots) <= 110

    with engine() as mock:
        run(lambda: scenario(address(mock)))


def test_a_stall_of_ours_is_not_blamed_on_the_target() -> None:
    async def scenario(name: str) -> None:
        async with polling(name, interval="200ms", timeout="400ms") as (poller, _):
            one = poller.targets[name]
            await until(lambda: one.engine.pages >= 3)
            for _ in range(3):
                missed = poller.stats.missed
                time.sleep(0.9)  # the loop is kept from running: requests on their way run out of time
                await until(lambda missed=missed: poller.stats.missed > missed)
            assert poller.lag.worst > 0.5
            assert poller.stats.failures == 0 and one.state.healthy

    with engine() as mock:
        run(lambda: scenario(address(mock)))


# ---------------------------------------------------------------- host tiers


def test_pages_of_a_host_tier_join_the_engines_of_their_entry() -> None:
    l2 = b"lmcache_mp:l1_memory_usage_bytes 1\nlmcache_mp:l1_memory_capacity_bytes 4\n"

    async def scenario(name: str, tier: str) -> None:
        async with polling(name, l2=[f"http://{tier}/metrics"]) as (poller, use):
            (page,) = poller.targets[name].engine.history.l2_pages
            await until(lambda: page._polls)
            await use(name, l2=[])
            assert poller.targets[name].engine.history.l2_pages == ()

    with engine() as mock, site(sends(l2)) as tier:
        run(lambda: scenario(address(mock), tier))
