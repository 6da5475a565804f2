"""Two pages of every release: one model, one rank, the same number for the same thing, under every name it ever had.

Releases differ in names (gpu_cache_usage_perc), spelling (colon or underscore), pids, ranks and their labels, tensor-
parallel copies, and in what they lack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from fleet.recordings_into import PRODUCTS, Slim

from diagnoser.pipeline import History
from diagnoser.replay import scrapes
from diagnoser.sources.recording import RecordedTarget, open_recording

from .compare import Difference, compared
from .conftest import Asked, Wanted, ask
from .oracle import Look, said

FOLDER = Path(__file__).parents[1] / "data" / "dialects"
NEWEST = 1_795_910_050.0
AT, WINDOW, STEP = NEWEST + 3.0, 20.0, 10.0
UNDERSCORES = "-underscores"
ELSEWHERE = ("lmcache-mp", "lmcache-inproc")
"""Pages of host tiers, which are no engines."""
OF_A_PAGE = (
    "running_max_requests",
    "waiting_last_requests",
    "waiting_max_requests",
    "l1_used_ratio_last",
    "l1_capacity_tokens",
    "queue_metrics_present",
)
OF_TWO = ("head_need_tokens", "ttft_p99_low_seconds", "ttft_p99_high_seconds", "preemptions")
SAME = (*OF_A_PAGE, *OF_TWO)


@cache
def _recordings() -> Mapping[str, Slim]:
    found: dict[str, Slim] = {}
    for path in sorted(FOLDER.glob("*.tar.xz")):
        name = path.name.removesuffix(".tar.xz")
        if any(part in name for part in ELSEWHERE):
            continue
        (target,) = open_recording(path).targets
        bare = RecordedTarget(name, {}, target._polls)
        for one, underscores in ((bare, False), (RecordedTarget(name + UNDERSCORES, {}, bare._polls), True)):
            labels, shift = {"job": "llm", "instance": one.name}, NEWEST - one.times[-1]
            found[one.name] = Slim(one, labels, shift=shift, underscores=underscores)
    return found


@pytest.fixture(scope="module", params=PRODUCTS)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Asked]]:
    folder = tmp_path_factory.mktemp("dialects")
    with PRODUCTS[request.param](folder, _recordings().values()) as url:
        yield request.param, ask(url, Wanted(AT, WINDOW, step=STEP, names=SAME, narrow=False))


@pytest.fixture(scope="module")
def histories() -> Mapping[str, History]:
    out = {}
    for name, stored in _recordings().items():
        out[name] = History(name, 1e9)
        for scrape in scrapes(stored.recorded):
            out[name].add(replace(scrape, at=scrape.at + stored.shift))
    return out


def test_the_same_engines(found: tuple[str, Asked], histories: Mapping[str, History]) -> None:
    """Family, ranks and model of every release."""
    got = {(one.engine.family, one.engine.target, one.engine.rank, one.engine.model) for one in found[1].diagnoses}
    windows = [window.engine for history in histories.values() for window in history.windows(AT, WINDOW)]
    assert got == {(engine.family, engine.target, engine.rank, engine.model) for engine in windows}


def test_the_same_readings(found: tuple[str, Asked], histories: Mapping[str, History]) -> None:
    assert [str(one) for one in _differences(found[1], found[0], histories)] == []


def _differences(asked: Asked, product: str, histories: Mapping[str, History]) -> Iterator[Difference]:
    look = Look(product, AT, WINDOW, STEP)
    for name, history in histories.items():
        for one in said(history, look):
            got = asked.of(name, one.pages.engine.rank)
            assert got is not None, name
            told = SAME if len(one.pages.snapshots) > 1 else OF_A_PAGE
            yield from (found for found in compared(one, got[0], look) if found.signal in told)
