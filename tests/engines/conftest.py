"""Pages of tests/data/dialects as Scrapes, and pages written by hand."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from diagnoser.engines import adapters
from diagnoser.model import Fact, Scrape, Snapshot, Target
from diagnoser.sources.exposition import PageParser

DATA = Path(__file__).parents[1] / "data" / "dialects"
Snapshots = Callable[..., list[Snapshot]]


def _scrapes(name: str) -> list[Scrape]:
    parser = PageParser({metric for adapter in adapters() for metric in adapter.metrics})
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        pages = {member.name: archive.extractfile(member) for member in archive}
        texts = {name: page.read().decode() for name, page in sorted(pages.items()) if page is not None}
    return [
        Scrape(Target(name), int(file.split(".")[0]) / 1000, parser.parse(text).samples) for file, text in texts.items()
    ]


def _snapshots(scrape: Scrape, facts: dict[str, object]) -> list[Snapshot]:
    known = {name: Fact(name, value, "test") for name, value in facts.items()}  # type: ignore[arg-type]
    return [snapshot for adapter in adapters() for snapshot in adapter.snapshots(scrape, known)]


@pytest.fixture(scope="session")
def page() -> Snapshots:
    """page(name, poll=-1, **facts) -> the snapshots of one poll of a recorded page."""

    def load(name: str, poll: int = -1, **facts: object) -> list[Snapshot]:
        return _snapshots(_scrapes(name)[poll], facts)

    return load


@pytest.fixture(scope="session")
def text() -> Snapshots:
    """text(exposition, **facts) -> the snapshots of a page written by hand."""

    def load(exposition: str, **facts: object) -> list[Snapshot]:
        parser = PageParser({metric for adapter in adapters() for metric in adapter.metrics})
        lines = "\n".join(line.strip() for line in exposition.strip().splitlines()) + "\n"
        return _snapshots(Scrape(Target("page"), 0.0, parser.parse(lines).samples), facts)

    return load
