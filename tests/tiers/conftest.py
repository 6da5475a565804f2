"""Pages of tests/data/dialects as (engine, facts, samples), the engine's page and the tier's page read together."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from diagnoser.engines import adapters
from diagnoser.model import Fact, Sample, Scrape, Target, TierState
from diagnoser.sources.exposition import PageParser
from diagnoser.tiers import read_tier, tiers

DATA = Path(__file__).parents[1] / "data" / "dialects"
WANTED = {metric for one in (*adapters(), *tiers()) for metric in one.metrics}
Read = Callable[..., list[TierState]]


def _samples(name: str, poll: int) -> tuple[Sample, ...]:
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        member = sorted(archive.getnames())[poll]
        page = archive.extractfile(member)
        assert page is not None
        return PageParser(WANTED).parse(page.read().decode()).samples


def _read(samples: tuple[Sample, ...], extra: dict[str, object]) -> list[TierState]:
    found = []
    for adapter in adapters():
        for snapshot in adapter.snapshots(Scrape(Target("page"), 0.0, samples), {}):
            told = {name: Fact(name, value, "test") for name, value in extra.items()}  # type: ignore[arg-type]
            found.append(read_tier(samples, snapshot.engine, {**snapshot.facts, **told}))
    return found


@pytest.fixture(scope="session")
def tier() -> Read:
    """tier(name, poll, beside="", **facts) -> the tier of every rank; `beside` is the engine page that goes with it."""

    def load(name: str, poll: int = -1, beside: str = "", **facts: object) -> list[TierState]:
        samples = _samples(name, poll) + (_samples(beside, poll) if beside else ())
        return _read(samples, facts)

    return load


@pytest.fixture(scope="session")
def tier_of_text() -> Read:
    """tier_of_text(exposition, **facts) -> the tier of every rank of a page written by hand."""

    def load(exposition: str, **facts: object) -> list[TierState]:
        lines = "\n".join(line.strip() for line in exposition.strip().splitlines()) + "\n"
        return _read(PageParser(WANTED).parse(lines).samples, facts)

    return load
