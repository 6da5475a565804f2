"""All recordings at once in a real Prometheus and a real VictoriaMetrics, thinned to a page every 5 s, and what both
evaluators say of them at the same instants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pytest
from fleet.recordings_into import COMMON_END, Loaded, recordings_into
from story import BOOK

from diagnoser.model import Diagnosis
from diagnoser.pipeline import History
from diagnoser.promql.evaluate import Wanted, evaluate
from diagnoser.promql.fleet import Fleet
from diagnoser.replay import scrapes
from diagnoser.signals.base import signals
from diagnoser.sources.prometheus.access import Access, open_client
from diagnoser.sources.prometheus.api import Server

EVERY, WINDOW = 5, 30.0
END = COMMON_END - 2.3
"""Pages lie midway between the steps of a subquery, whole multiples of EVERY: jitter then moves none across."""
INSTANTS = (END + 3.0, END - 13.7, END - 31.0)
"""Ends of windows, none of them on a page or a step."""
PRODUCTS = ("prometheus", "victoria")


@dataclass(frozen=True)
class Asked:
    """One evaluation by a server."""

    at: float
    diagnoses: tuple[Diagnosis, ...]
    fleet: Fleet

    def of(self, target: str, rank: str) -> tuple[dict[str, float | None], Diagnosis] | None:
        """Signals and diagnosis of one rank."""
        for i, one in enumerate(self.fleet.ranks):
            if (one.target, one.rank) == (target, rank):
                return {name: column[i] for name, column in self.fleet.columns.items()}, self.diagnoses[i]
        return None


async def _ask(url: str, wanted: Wanted) -> Asked:
    async with open_client(Access(url)) as client:
        diagnoses, fleet, _ = await evaluate(Server(client, url), wanted, BOOK)
    return Asked(wanted.at, diagnoses, fleet)


def ask(url: str, wanted: Wanted) -> Asked:
    """Through our own evaluator."""
    return asyncio.run(_ask(url, wanted))


def ask_all(urls: Mapping[str, str], wanted: list[Wanted]) -> Mapping[str, list[Asked]]:
    """The same of several servers at once."""

    async def each(url: str) -> list[Asked]:
        return [await _ask(url, one) for one in wanted]

    async def work() -> list[list[Asked]]:
        return await asyncio.gather(*(each(url) for url in urls.values()))

    return dict(zip(urls, asyncio.run(work()), strict=True))


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Loaded]]:
    """Both servers."""
    folder = tmp_path_factory.mktemp("promql")
    with ExitStack() as held:
        yield {
            kind: held.enter_context(recordings_into(kind, folder / kind, every=EVERY, end=END)) for kind in PRODUCTS
        }


@pytest.fixture(scope="session")
def histories(loaded: Mapping[str, Loaded]) -> Mapping[str, History]:
    """The same pages as Python keeps them."""
    found = {}
    for name, stored in loaded["prometheus"].stored.items():
        found[name] = History(name, 1e9)
        for scrape in scrapes(stored.recorded):
            found[name].add(replace(scrape, at=scrape.at + stored.shift))
    return found


@pytest.fixture(scope="session")
def asked(loaded: Mapping[str, Loaded]) -> Mapping[str, list[Asked]]:
    """Every signal and every verdict by both servers, an entry an instant."""
    names = tuple(signal.name for signal in signals())
    wanted = [Wanted(at, WINDOW, step=float(EVERY), names=names, narrow=False) for at in INSTANTS]
    return ask_all({kind: one.url for kind, one in loaded.items()}, wanted)
