"""Every release tells the same story (poll 6: usage .985, 30 running, 41 waiting, 22 thrown out of 43008 tokens)."""

from __future__ import annotations

import pytest

from diagnoser.engines import adapters
from diagnoser.engines.base import HISTOGRAMS, READINGS
from diagnoser.model import Range

RELEASES = {
    "vllm-0.8.5": (1, "<0.9.2"),
    "vllm-0.8.5-dp2": (1, "<0.9.2"),
    "vllm-0.9.2-dp2": (1, ">=0.9 <0.10"),
    "vllm-0.10.0": (1, ">=0.9.3 <0.10.2"),
    "vllm-0.10.0-dp2-2api": (2, ">=0.9.3 <0.10.2"),
    "vllm-0.11.0-dp2-2api": (2, ">=0.10.3 <0.12"),
    "vllm-0.11.0-hidden": (1, ">=0.10.3 <0.12"),
    "vllm-0.12.0": (1, ">=0.11.1 <0.13"),
    "vllm-0.16.0": (1, ">=0.15.1 <0.18"),
    "vllm-0.19.0": (1, ">=0.18.1 <0.20.2"),
    "vllm-0.21.0": (1, ">=0.19.1 <0.24"),
    "vllm-0.24.0-dp2": (2, ">=0.23.1 <0.25"),
    "vllm-0.26.0": (1, ">=0.25.1 <0.28"),
    "vllm-0.29.0": (1, ">=0.28.1 <0.30"),
    "vllm-0.31.0": (1, ">=0.30.1 <0.32"),
    "vllm-0.32.0": (1, ">=0.31.1"),
    "vllm-0.32.0-dp2": (2, ">=0.31.1"),
    "vllm-0.32.0-dp2-2api": (2, ">=0.31.1"),
    "vllm-0.32.0-openmetrics": (1, ">=0.31.1"),
    "sglang-0.4.6": (1, "<0.4.10"),
    "sglang-0.4.10-dp2": (2, ">=0.4.7 <0.5.2"),
    "sglang-0.4.10-tp2": (1, ">=0.4.7 <0.5.2"),
    "sglang-0.5.2": (1, ">=0.4.11 <0.5.4"),
    "sglang-0.5.4-tp2": (1, ">=0.5.3 <0.5.5"),
    "sglang-0.5.6": (1, ">=0.5.6 <0.5.7"),
    "sglang-0.5.6-dp2": (2, ">=0.5.6 <0.5.7"),
    "sglang-0.5.7": (1, ">=0.5.7 <0.5.10"),
    "sglang-0.5.9-tp2": (1, ">=0.5.9 <0.5.10"),
    "sglang-0.5.10": (1, ">=0.5.10 <0.5.11"),
    "sglang-0.5.11-dp2": (2, ">=0.5.11 <0.5.12"),
    "sglang-0.5.14-tp2": (1, ">=0.5.12 <0.5.16"),
    "sglang-0.5.18": (1, ">=0.5.18 <0.5.20"),
    "sglang-0.5.23": (1, ">=0.5.23"),
    "sglang-0.5.23-dp2": (2, ">=0.5.23"),
    "sglang-0.5.23-tp2": (1, ">=0.5.23"),
    "sglang-0.5.23-openmetrics": (1, ">=0.5.23"),
}
VLLM_ALWAYS = {
    "running_requests", "waiting_requests", "l1_used_ratio", "l1_used_tokens", "l1_capacity_tokens",
    "preemptions_total", "prompt_tokens_total", "generation_tokens_total", "decode_tokens_total",
    "finished_requests_total", "ttft_seconds", "queue_seconds", "prefill_seconds", "decode_seconds", "e2e_seconds",
    "inter_token_seconds", "prompt_tokens", "generation_tokens", "max_tokens_requested", "iteration_tokens",
}  # fmt: skip
SGLANG_ALWAYS = {
    "running_requests", "waiting_requests", "l1_used_ratio", "l1_used_tokens", "l1_capacity_tokens", "cold_engine",
    "prompt_tokens_total", "generation_tokens_total", "finished_requests_total", "generation_tokens_per_second",
    "prefix_queries_total", "prefix_hits_total", "ttft_seconds", "e2e_seconds", "inter_token_seconds",
}  # fmt: skip
FROM_RELEASE = {
    "vllm": [
        ("0.12", {"external_queries_total", "external_hits_total", "engine_awake"}),
        ("0.13", {"uncached_prompt_tokens"}),
        ("0.16", {"prefill_effective_tokens_total"}),
        ("0.20.2", {"waiting_deferred_requests"}),
        ("0.29", {"prefix_queries_total", "prefix_hits_total"}),
        ("0.30", {"request_preemptions"}),
        ("0.32", {"rejected_requests_total"}),
    ],
    "sglang": [
        ("0.4.10", {"grammar_queue_requests", "pd_bootstrap_queue_requests", "pd_inflight_queue_requests"}),
        ("0.5.2", {"preempted_last_event_requests", "swa_used_ratio"}),
        ("0.5.4", {"queue_seconds"}),
        ("0.5.6", {"new_token_ratio", "evicted_tokens_total"}),
        ("0.5.7", {"preemptions_total", "decode_sum_tokens", "prefill_compute_tokens_total", "decode_passes_total"}),
        ("0.5.10", {"prefill_passes_total"}),
        ("0.5.11", {"l1_evictable_tokens", "l1_available_tokens", "prompt_tokens", "generation_tokens"}),
        ("0.5.12", {"uncached_prompt_tokens"}),
        ("0.5.18", {"prefill_effective_tokens_total", "external_queries_total", "external_hits_total"}),
        ("0.5.20", {"scheduler_idle_seconds_total"}),
    ],
}
NO_MODEL_HAS_THEM_FROM = {"swa_used_ratio": "0.5.12"}
"""SGLang 0.5.12 on says that the model has no sliding window instead of reporting 0."""


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def test_both_engines_are_found() -> None:
    assert [adapter.family for adapter in adapters()] == ["sglang", "vllm"]


@pytest.mark.parametrize(("name", "ranks", "version"), [(name, *expected) for name, expected in RELEASES.items()])
def test_story(page, name: str, ranks: int, version: str) -> None:
    found = page(name)
    assert [snapshot.engine.version for snapshot in found] == [version] * ranks
    assert all(snapshot.engine.model == "meta-llama/Llama-3.1-8B-Instruct" for snapshot in found)
    for snapshot in found:
        second = snapshot.engine.rank == "1"
        usage, waiting, preempted = (0.98, 36, 18) if second else (0.985, 41, 22)
        assert snapshot.value("l1_used_ratio") == pytest.approx(usage, abs=0.006)
        assert snapshot.value("running_requests") == 30
        assert snapshot.value("waiting_requests") == waiting
        assert snapshot.value("preemptions_total") in (preempted, None, 9)
        assert not any(bad.fatal for bad in snapshot.bad_series)


@pytest.mark.parametrize("name", RELEASES)
def test_pool_is_one_of_43008_tokens(page, name: str) -> None:
    for snapshot in page(name):
        pool = snapshot.pool
        assert pool.capacity == pytest.approx(43008, rel=0.006)
        assert isinstance(pool.used, float)
        assert pool.used == pytest.approx(0.98 * 43008, rel=0.01)
        if isinstance(pool.evictable, float):
            assert isinstance(pool.available, float)
            assert pool.used + pool.evictable + pool.available == pool.capacity
        else:
            assert pool.evictable == pool.available == Range(0.0, pytest.approx(pool.capacity - pool.used))
            assert pool.reason


@pytest.mark.parametrize("name", RELEASES)
def test_everything_is_read_or_explained(page, name: str) -> None:
    for snapshot in page(name):
        have = set(snapshot.readings) | set(snapshot.histograms)
        assert have | set(snapshot.missing) == set(READINGS) | set(HISTOGRAMS)
        assert not have & set(snapshot.missing)
        assert all(snapshot.missing.values())


@pytest.mark.parametrize("name", RELEASES)
def test_readings_that_must_exist(page, name: str) -> None:
    family, release = name.split("-")[:2]
    must = set(VLLM_ALWAYS if family == "vllm" else SGLANG_ALWAYS)
    for since, names in FROM_RELEASE[family]:
        if _version(release) >= _version(since):
            must |= names
    for reading, last in NO_MODEL_HAS_THEM_FROM.items():
        if _version(release) >= _version(last):
            must.discard(reading)
    for snapshot in page(name):
        assert must <= set(snapshot.readings) | set(snapshot.histograms)


@pytest.mark.parametrize("name", RELEASES)
def test_a_known_version_is_kept_and_names_agree_with_it(page, name: str) -> None:
    release = name.split("-")[1]
    for snapshot in page(name, version=release):
        assert snapshot.engine.version == release
        assert not any("gone in this version" in why for why in snapshot.missing.values() if "num_requests" in why)
