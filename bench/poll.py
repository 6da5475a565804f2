"""CPU of one scrape of a 51 KB page: the real Prometheus and our ways to do it, on the same mock engines in one run.

usage: python bench/poll.py [ENGINES [SECONDS]]            default: 50 engines, 15 s each, a page a second from each

Needs the Debian package prometheus. Prometheus' CPU is that of its whole process while it scrapes, storage included.
Ours: "fetch" is the GET alone, "+ parse" is what Prometheus does too (up to samples of wanted metrics), "+ snapshot"
is all that the service does before it evaluates.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

sys.path[0] = str(Path(__file__).parent)
import farm  # noqa: E402

sys.path[0] = str(Path(__file__).parents[1] / "tests")

import httpx  # noqa: E402
from prometheus.servers import prometheus  # noqa: E402

from diagnoser.pipeline import History, wanted_metrics  # noqa: E402
from diagnoser.service.fetch import AioSource, open_session  # noqa: E402
from diagnoser.sources.exposition import PageParser  # noqa: E402
from diagnoser.sources.http import HttpSource, open_client  # noqa: E402

Once = Callable[[HttpSource], Awaitable[object]]
TICK = os.sysconf("SC_CLK_TCK")


def of_prometheus(targets: Sequence[str], seconds: float) -> float:
    """CPU seconds a scrape of the real Prometheus."""
    config = "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: llm\n  static_configs:\n"
    config += f"  - targets: [{', '.join(map(repr, targets))}]\n"
    with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder) / "p", config=config) as url:
        pid = _child(url)
        time.sleep(5)  # its caches are warm then, as ours after the first page
        before, began = _cpu(pid), _scrapes(url)
        time.sleep(seconds)
        return (_cpu(pid) - before) / max(1.0, _scrapes(url) - began)


def _child(url: str) -> int:
    """The process that listens there."""
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = stat.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"prometheus") and any(url.removeprefix("http://").encode() in word for word in words):
            return int(stat.parent.name)
    raise AssertionError("the Prometheus that was started is not found")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _scrapes(url: str) -> float:
    text = httpx.get(f"{url}/metrics", trust_env=False).text
    return sum(map(float, re.findall(r"^prometheus_target_interval_length_seconds_count\{.*\} (\S+)", text, re.M)))


async def ours(sources: Sequence[HttpSource], once: Once, seconds: float) -> float:
    """CPU seconds a poll: every source once a second, spread over it, as the service does."""
    polls = 0

    async def poll(place: int, source: HttpSource) -> None:
        nonlocal polls
        start = loop.time() + place / len(sources)
        for turn in range(int(seconds)):
            await asyncio.sleep(start + turn - loop.time())
            await once(source)
            polls += 1

    loop = asyncio.get_running_loop()
    await asyncio.gather(*(once(source) for source in sources))
    before = time.process_time()
    await asyncio.gather(*(poll(place, source) for place, source in enumerate(sources)))
    return (time.process_time() - before) / polls


async def fetch(source: HttpSource) -> object:
    """The GET alone."""
    return await source.fetch()


async def parse(source: HttpSource) -> object:
    """Up to samples."""
    return await source.scrape()


def snapshot() -> Once:
    """Up to snapshots in the history of each target."""
    histories: dict[str, History] = {}

    async def once(source: HttpSource) -> object:
        scrape = await source.scrape()
        return histories.setdefault(source.target.name, History(scrape.target.name, 32)).add(scrape)

    return once


async def variants(targets: Sequence[str], seconds: float) -> dict[str, float]:
    """All of ours, by name."""
    found: dict[str, float] = {}
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(open_session())
        client = await stack.enter_async_context(open_client())
        plain = [HttpSource(await stack.enter_async_context(open_client()), one, _parser()) for one in targets]
        aio = [AioSource(session, client, one, _parser()) for one in targets]
        ways: list[tuple[str, Sequence[HttpSource], Once]] = [
            ("httpx fetch", plain, fetch),
            ("httpx fetch + parse", plain, parse),
            ("aiohttp fetch", aio, fetch),
            ("aiohttp fetch + parse", aio, parse),
            ("aiohttp fetch + parse + snapshot", aio, snapshot()),
        ]
        if bridged := await _bridged(targets, stack):
            ways[2:2] = [("httpx-aiohttp fetch", bridged, fetch)]
        for name, sources, once in ways:
            found[name] = await ours(sources, once, seconds)
    return found


async def _bridged(targets: Sequence[str], stack: AsyncExitStack) -> list[HttpSource]:
    """httpx over aiohttp, where `httpx-aiohttp` is installed."""
    try:
        from httpx_aiohttp import AiohttpTransport
    except ImportError:
        return []
    clients = [httpx.AsyncClient(transport=AiohttpTransport(), trust_env=False) for _ in targets]
    for client in clients:
        await stack.enter_async_context(client)
    return [HttpSource(client, one, _parser()) for client, one in zip(clients, targets, strict=True)]


def _parser() -> Callable[[str], object]:
    return PageParser(wanted_metrics()).parse


def main() -> None:
    """Measure and print."""
    engines, seconds = int((sys.argv[1:2] or ["50"])[0]), float((sys.argv[2:3] or ["15"])[0])
    with farm.farm(engines) as targets:
        theirs = of_prometheus(targets, seconds)
        print(f"{engines} engines, a page a second from each, {seconds:g} s each way; CPU of one scrape:")
        print(f"  {'Prometheus 2.42 scrape + parse + store':<40} {theirs * 1000:5.2f} ms")
        for name, cost in asyncio.run(variants(targets, seconds)).items():
            print(f"  {name:<40} {cost * 1000:5.2f} ms   {cost / theirs:4.2f} x Prometheus", flush=True)


if __name__ == "__main__":
    main()
