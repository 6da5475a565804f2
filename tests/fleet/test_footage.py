"""Footage goes round without a seam in what counts up, and an older release shows less, never something else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bench.fleet.footage import DATA, Footage, recorded
from bench.fleet.releases import as_release
from bench.fleet.takes import phases, stamps, take
from diagnoser.pipeline import wanted_metrics


@pytest.fixture(scope="module")
def preempting() -> Footage:
    return recorded(DATA / "recordings" / "vllm-0.32.0--c-l1-preempt.tar.xz", wanted_metrics())


def row(footage: Footage, name: str) -> int:
    return next(i for i, (known, _) in enumerate(footage.series) if known == name)


def test_only_the_bound_part_is_shown(preempting: Footage) -> None:
    assert (preempting.cause, preempting.family, preempting.version) == ("l1", "vllm", "0.32.0")
    assert preempting.refused["0"] > 0.9 and 20 < preempting.lap < 89
    waiting = preempting.values[:, row(preempting, "vllm:num_requests_waiting")]
    assert waiting.min() > 0


def test_counters_go_on_at_the_real_rate_lap_after_lap(preempting: Footage) -> None:
    tokens = row(preempting, "vllm:generation_tokens_total")
    gained = preempting.values[-1, tokens] - preempting.values[0, tokens]
    shot = take(preempting, 0.0, 60, 15.0, 1e9)
    steps = np.diff(shot.values[tokens])
    assert (steps > 0).all() and 5 * preempting.lap < 59 * 15
    total = steps.sum() / (shot.offsets[-1] - shot.offsets[0])
    assert total == pytest.approx(gained / preempting.lap, rel=0.05)


def test_everything_that_counts_is_known_to(preempting: Footage) -> None:
    gauges = {name for (name, _), counts in zip(preempting.series, preempting.counting, strict=True) if not counts}
    assert not [name for name in gauges if re.search("_(total|bucket|sum|count)$", name)]
    assert {"vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"} <= gauges


def test_stamps_follow_the_pages_with_little_jitter(preempting: Footage) -> None:
    for phase in phases(preempting, 4):
        shot = take(preempting, phase, 24, 15.0, 1e9)
        times = stamps(shot, 1_795_975_740.0)
        assert times[0] - 1_795_975_740_000 < 50
        assert (abs(np.diff(times) - 15_000) < 1_100).all()


def test_a_process_has_started_before_the_fleet_does() -> None:
    page = next((DATA / "dialects").glob("vllm-0.16.0.tar.xz"))
    shown = recorded(page, wanted_metrics())
    started = take(shown, 0.0, 3, 15.0, 1e9).values[row(shown, "process_start_time_seconds")]
    assert (started == started[0]).all() and 0 < 1e9 - started[0] < 86_400


def test_an_older_release_has_its_own_names_and_labels(preempting: Footage) -> None:
    page = recorded(DATA / "dialects" / "vllm-0.8.5.tar.xz", wanted_metrics())
    old = as_release(preempting, page)
    assert {name for name, _ in old.series} <= {name for name, _ in page.series}
    usage, before = row(old, "vllm:gpu_cache_usage_perc"), row(preempting, "vllm:kv_cache_usage_perc")
    assert (old.values[:, usage] == preempting.values[:, before]).all()
    info = row(old, "vllm:cache_config_info")
    assert len(old.series[info][1]) < len(preempting.series[row(preempting, "vllm:cache_config_info")][1])
    assert old.version == "0.8.5" and old.cause == "l1"
