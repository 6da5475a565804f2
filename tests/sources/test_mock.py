"""The mock engine over real HTTP, with a clock of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from diagnoser.errors import RecordingError, UsageError
from diagnoser.sources.exposition import PageParser
from diagnoser.sources.http import HttpSource, open_client
from diagnoser.sources.mock import MockEngine
from diagnoser.sources.recording import RecordedPage


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Recorded:
    polls: tuple[RecordedPage, ...]
    name: str = "incident"

    def pages(self) -> Iterator[RecordedPage]:
        return iter(self.polls)


def page(at: float) -> RecordedPage:
    return RecordedPage(at, f"vllm:x {at:g}\n", None)


FOUR = Recorded((page(50), page(51), RecordedPage(52, None, "URLError"), page(53)))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False) as client:
        yield client


def test_the_page_due_now_is_served(clock: Clock, client: httpx.Client) -> None:
    with MockEngine(FOUR, clock=clock) as engine:
        served = {}
        for offset in (0.0, 0.9, 1.0, 1.5, 3.0, 3.9):
            clock.now = 100 + offset
            served[offset] = client.get(engine.url).text.strip()
        expected = ["vllm:x 50", "vllm:x 50", "vllm:x 51", "vllm:x 51", "vllm:x 53", "vllm:x 53"]
        assert list(served.values()) == expected
        assert client.get(engine.url).headers["Content-Type"].startswith("text/plain; version=0.0.4")


def test_recorded_failure_drops_the_connection(clock: Clock, client: httpx.Client) -> None:
    with MockEngine(FOUR, clock=clock) as engine:
        clock.now = 102.5
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(engine.url)
        clock.now = 103.0
        assert client.get(engine.url).status_code == 200


def test_recording_that_has_ended(clock: Clock, client: httpx.Client) -> None:
    with MockEngine(FOUR, clock=clock) as engine:
        assert engine.remaining_seconds == engine.duration_seconds == 4.0
        clock.now = 104.0
        answer = client.get(engine.url)
        assert (answer.status_code, answer.text) == (503, "recording ended\n")
        assert engine.remaining_seconds == 0.0


def test_speed(clock: Clock, client: httpx.Client) -> None:
    with MockEngine(FOUR, clock=clock, speed=10) as engine:
        clock.now = 100.125
        assert client.get(engine.url).text == "vllm:x 51\n"
        assert engine.remaining_seconds == 0.4 - 0.125


def test_loop_begins_again(clock: Clock, client: httpx.Client) -> None:
    with MockEngine(FOUR, clock=clock, loop=True) as engine:
        clock.now = 100 + 4 * 7 + 1
        assert client.get(engine.url).text == "vllm:x 51\n"
        assert engine.remaining_seconds == float("inf")


def test_hole_is_not_served_as_a_frozen_engine(clock: Clock, client: httpx.Client) -> None:
    polls = Recorded(tuple(page(at) for at in (0, 1, 2, 30, 31)))
    with MockEngine(polls, clock=clock) as engine:
        for offset, status in ((2.5, 200), (20, 503), (30, 200)):
            clock.now = 100 + offset
            assert client.get(engine.url).status_code == status


def test_single_page(clock: Clock, client: httpx.Client) -> None:
    with MockEngine(Recorded((page(5),)), clock=clock) as engine:
        assert client.get(engine.url).text == "vllm:x 5\n"
        assert engine.remaining_seconds == 1.0


def test_other_paths_and_methods(clock: Clock, client: httpx.Client) -> None:
    with MockEngine(FOUR, clock=clock) as engine:
        assert client.get(engine.url + "?name[]=x").status_code == 200
        assert client.get(engine.url.replace("/metrics", "/health")).status_code == 404
        assert client.post(engine.url).status_code == 501


def test_connection_is_kept_and_closed_by_stop(clock: Clock, client: httpx.Client) -> None:
    engine = MockEngine(FOUR, clock=clock)
    engine.start()
    used = {id(client.get(engine.url).extensions["network_stream"].get_extra_info("socket")) for _ in range(3)}
    assert len(used) == 1
    engine.stop()
    engine.stop()
    with pytest.raises(httpx.TransportError):
        client.get(engine.url)


def test_quiet(clock: Clock, client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    with MockEngine(FOUR, clock=clock) as engine:
        client.get(engine.url)
        client.get(engine.url + "/x")
    assert capsys.readouterr() == ("", "")


def test_bytes_are_served_as_recorded(clock: Clock, client: httpx.Client) -> None:
    body = b'vllm:x{a="\xff"} 1\r\n'
    recorded = Recorded((RecordedPage(0, body.decode("utf-8", "surrogateescape"), None),))
    with MockEngine(recorded, clock=clock) as engine:
        assert client.get(engine.url).content == body


def test_our_own_source_reads_it(clock: Clock) -> None:
    async def scrape(url: str) -> tuple[list[float], str | None]:
        async with open_client() as client:
            scrape = await HttpSource(client, url, PageParser(["vllm:x"]).parse).scrape()
            return [sample.value for sample in scrape.samples], scrape.error

    with MockEngine(FOUR, clock=clock) as engine:
        assert asyncio.run(scrape(engine.url)) == ([50.0], None)
        clock.now = 102.0
        values, error = asyncio.run(scrape(engine.url))
        assert values == [] and error is not None and "breaks off" in error
        clock.now = 110.0
        assert "503" in str(asyncio.run(scrape(engine.url))[1])


def test_what_cannot_be_served(clock: Clock) -> None:
    with pytest.raises(RecordingError, match="no page"):
        MockEngine(Recorded(()))
    for speed in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="speed"):
            MockEngine(FOUR, speed=speed)
    with MockEngine(FOUR) as first:
        port = httpx.URL(first.url).port
        assert port is not None
        with pytest.raises(UsageError, match="choose another --port"):
            MockEngine(FOUR, port=port).start()
    with pytest.raises(UsageError, match="cannot listen"):
        MockEngine(FOUR, port=99_999).start()
