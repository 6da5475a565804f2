"""Reading over time: counters and histograms over restarts, quantiles no finer than their buckets."""

from __future__ import annotations

import pytest

from diagnoser.model import EngineId, Histogram, PoolState, Reading, Snapshot, Window
from diagnoser.signals.view import Found, Missing, View, quantile_bucket

ENGINE = EngineId("any", "test")


def view(counters: list[float | None], histograms: list[tuple[float, ...]] | None = None) -> View:
    """One page a second; a counter `c` and, if given, cumulative counts of a histogram `h` with edges 1, 2, +Inf."""
    snapshots = tuple(
        Snapshot(
            ENGINE,
            float(i),
            {} if value is None else {"c": Reading(value, "c_total")},
            {"h": Histogram((1.0, 2.0, float("inf")), histograms[i], sum(histograms[i]), "h")} if histograms else {},
            {"c": "not in this version"},
            PoolState(),
        )
        for i, value in enumerate(counters)
    )
    return View(Window(ENGINE, float(len(counters) - 1), float(len(counters)), snapshots))


@pytest.mark.parametrize(
    ("counters", "grew"),
    [([3.0, 5.0, 9.0], 6.0), ([3.0, 5.0, 1.0, 4.0], 6.0), ([7.0, 7.0], 0.0), ([None, 2.0, 5.0], 3.0)],
)
def test_a_counter_grows_over_restarts(counters: list[float | None], grew: float) -> None:
    assert view(counters).increase("c") == Found(grew, ("c_total",))


def test_one_page_has_no_rate_and_an_absent_counter_says_why() -> None:
    one, absent = view([4.0]).rate("c"), view([None, None]).rate("c")
    assert isinstance(one, Missing) and "two pages" in one.reason
    assert absent == Missing("not in this version")


@pytest.mark.parametrize(
    ("pages", "counts"),
    [
        ([(1, 1, 2), (1, 2, 4)], (0, 1, 2)),
        ([(1, 1, 2), (3, 3, 4), (0, 1, 1), (1, 2, 3)], (3, 4, 5)),
        ([(5, 5, 5), (1, 1, 1), (0, 0, 0), (0, 2, 2)], (1, 3, 3)),
    ],
)
def test_a_histogram_grows_over_restarts(pages: list[tuple[float, ...]], counts: tuple[float, ...]) -> None:
    found = view([0.0] * len(pages), pages).histogram("h")
    assert isinstance(found, Histogram) and found.counts == counts


def test_a_quantile_is_its_bucket() -> None:
    edges = (10.0, 20.0, 40.0, float("inf"))
    assert quantile_bucket(Histogram(edges, (50, 90, 100, 100), 0, ""), 0.99) == (20.0, 40.0)
    assert quantile_bucket(Histogram(edges, (50, 90, 90, 100), 0, ""), 0.99) == (40.0, float("inf"))
    assert quantile_bucket(Histogram(edges, (0, 0, 0, 0), 0, ""), 0.5) is None
