"""What a target's history keeps: bounded, and true to who is there."""

from __future__ import annotations

from story import START, pool, text, vllm

from diagnoser.model import Scrape, Target
from diagnoser.pipeline import History, Thinning, wanted_metrics
from diagnoser.sources.base import to_scrape
from diagnoser.sources.exposition import PageParser

TARGET, PARSE = Target("test:8000"), PageParser(wanted_metrics()).parse


def page(at: float, ranks: int) -> Scrape:
    poll: dict[str, float] = {}
    for rank in range(ranks):
        poll |= vllm(rank, running=1, waiting=0, usage=0.1, preempted=0, generated=at - START) | pool(256, rank=rank)
    return to_scrape(TARGET, at, text(poll), PARSE)


def test_a_rank_that_is_gone_leaves_with_its_window() -> None:
    history = History(TARGET.name, 10)
    for i in range(5):
        history.add(page(START + i, ranks=2))
    for i in range(5, 30):
        history.add(page(START + i, ranks=1))
    assert [w.engine.rank for w in history.windows(START + 29, 10)] == ["0"]


def test_a_dead_target_keeps_who_it_was() -> None:
    history = History(TARGET.name, 10)
    history.add(page(START, ranks=2))
    for i in range(1, 3600):
        history.add(Scrape(TARGET, START + i, error="test:8000 refused the connection."))
    windows = history.windows(START + 3599, 10)
    assert [(w.engine.family, w.engine.rank, len(w.snapshots)) for w in windows] == [("vllm", "0", 0), ("vllm", "1", 0)]
    assert all(len(w.failures) <= 12 for w in windows)


def test_memory_is_bounded_by_the_window() -> None:
    history = History(TARGET.name, 10)
    for i in range(500):
        history.add(page(START + i, ranks=1))
    (window,) = history.windows(START + 499, 1000)
    assert len(window.snapshots) <= 13


def test_pages_behind_the_window_are_thinned_out() -> None:
    history = History(TARGET.name, 100, thinning=Thinning(after=10, step=5))
    for i in range(500):
        history.add(page(START + i, ranks=1))
    (whole,) = history.windows(START + 499, 1000)
    (recent,) = history.windows(START + 499, 10)
    ages = [START + 499 - snapshot.at for snapshot in whole.snapshots]
    assert len(recent.snapshots) == 11
    assert ages == sorted(ages, reverse=True)
    assert 25 <= len(ages) <= 33 and 90 <= max(ages) <= 101


def test_thinned_pages_are_bounded_while_the_target_is_dead() -> None:
    history = History(TARGET.name, 100, thinning=Thinning(after=10, step=5))
    for i in range(100):
        history.add(page(START + i, ranks=1))
    for i in range(100, 1000):
        history.add(Scrape(TARGET, START + i, error="test:8000 refused the connection."))
    (window,) = history.windows(START + 999, 1000)
    assert len(window.snapshots) <= 23
