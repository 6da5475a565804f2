"""Every window signal of both evaluators, of every recording, at the same instants, by both servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from diagnoser.pipeline import History

from .compare import Difference, compared
from .conftest import EVERY, WINDOW, Asked
from .differences import LISTED
from .oracle import Look, said

PAGES = ("scrapes", "failed_scrapes")


def _differences(found: Asked, product: str, histories: Mapping[str, History]) -> Iterator[Difference]:
    look = Look(product, found.at, WINDOW, float(EVERY))
    for name, history in histories.items():
        for one in said(history, look):
            if len(one.pages.snapshots) < 2:
                continue  # Python says nothing of one page but that it is one; below
            got = found.of(name, one.pages.engine.rank)
            assert got is not None, (name, one.pages.engine)
            yield from compared(one, got[0], look)


@pytest.fixture(scope="module")
def differences(asked: Mapping[str, list[Asked]], histories: Mapping[str, History]) -> list[Difference]:
    return [
        difference
        for product, instants in asked.items()
        for found in instants
        for difference in _differences(found, product, histories)
    ]


def test_nothing_was_refused(asked: Mapping[str, list[Asked]]) -> None:
    assert [(found.fleet.failed, found.fleet.warnings) for instants in asked.values() for found in instants] == [
        ({}, ())
    ] * sum(map(len, asked.values()))


def test_no_difference_is_unlisted(differences: list[Difference]) -> None:
    unlisted = [str(one) for one in differences if not any(listed.matches(one) for listed in LISTED)]
    assert unlisted == []


def test_every_listed_difference_still_occurs(differences: list[Difference]) -> None:
    stale = [
        (name, listed.what, listed.reason)
        for listed in LISTED
        for name in listed.signals
        if not any(one.signal == name and listed.matches(one) for one in differences)
    ]
    assert stale == []


def test_pages_are_counted_alike_also_where_there_are_none(
    asked: Mapping[str, list[Asked]], histories: Mapping[str, History]
) -> None:
    """Also of a target that answers no more: Python has a window of failures, the server `up` = 0."""
    for instants in asked.values():
        for found in instants:
            for name, history in histories.items():
                for window in history.windows(found.at, WINDOW):
                    got = found.of(name, window.engine.rank)
                    pages, failed = len(window.snapshots), len(window.failures)
                    if got is None:
                        assert not pages, (name, found.at)
                        continue
                    assert (got[0]["scrapes"], got[0]["failed_scrapes"]) == (pages, failed), (name, found.at)
