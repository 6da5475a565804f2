"""Pools of both engines: groups of hybrids, window and state pools, slots, equivalent tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from diagnoser.capacity import Budget, Deployment, Plan, Request, estimate, make_pool, workload
from diagnoser.capacity.sglang import SglangPool
from diagnoser.capacity.vllm import VllmPool

Planned = Callable[..., Plan]
GIB = 1024**3


def groups(made: Plan) -> list[tuple[str, int, int]]:
    """(kind, layers, block size) of every vLLM group."""
    pool = make_pool(made, GIB)
    assert isinstance(pool, VllmPool)
    return [(group.kind.value, len(group.caches), group.block) for group in pool.groups]


def test_one_group_where_all_layers_keep_all_tokens(planned: Planned) -> None:
    assert groups(planned("llama-3-70b")) == [("full", 80, 16)]
    assert groups(planned("deepseek-v3.2")) == [("latent", 61, 16)]
    assert groups(planned("glm-5.2")) == [("latent", 78, 16)]
    assert groups(planned("mistral-7b-v0.1")) == [("sliding", 32, 16)]


def test_hybrids_are_split_by_the_smaller_kind(planned: Planned) -> None:
    assert groups(planned("gpt-oss-120b")) == [("sliding", 18, 16), ("full", 18, 16)]
    assert groups(planned("llama-4-scout")) == [("chunked", 12, 16)] * 3 + [("full", 12, 16)]
    assert groups(planned("gemma-3-27b"))[-1] == ("full", 10, 16)
    assert [size for _, size, _ in groups(planned("gemma-3-27b"))[:-1]] == [9, 9, 9, 9, 8, 8]
    assert "6 groups of 10 hold 52 layers, the rest is padding" in make_pool(planned("gemma-3-27b"), GIB).size.notes


def test_a_draft_layer_pads_instead_of_splitting(planned: Planned) -> None:
    """gpt-oss-20b + EAGLE: 12 windows and 13 full layers become two groups of 13."""
    pool = make_pool(planned("gpt-oss-20b", draft_layers=1), GIB)
    assert isinstance(pool, VllmPool)
    assert [len(group.caches) for group in pool.groups] == [12, 13]
    assert pool.block_bytes == 13 * 16 * 2048


def test_small_pages_take_more_tokens(planned: Planned) -> None:
    """MiMo-V2-Flash: full layers have half the heads of windows, so their blocks hold 32 tokens."""
    found = groups(planned("mimo-v2-flash"))
    assert ("full", 9, 32) in found
    assert ("sliding", 8, 16) in found


def test_a_request_of_gpt_oss(planned: Planned) -> None:
    """cdiv(n, 16) blocks, and 9 for a window of 128 that need not begin with a block."""
    pool = make_pool(planned("gpt-oss-120b"), 8 * GIB)
    assert isinstance(pool, VllmPool)
    assert pool.need(32_768, 1) == 2048 + 9
    assert pool.need(100, 1) == 7 + 7
    assert pool.need(32_768, 8192) == 2048 + 521


def test_equivalent_tokens_depend_on_the_length(planned: Planned) -> None:
    short, long = (make_pool(planned("gemma-3-27b"), 40 * GIB, length).size for length in (4096, 131_072))
    assert short.tokens < long.tokens
    assert not short.tokens_exact
    assert short.blocks == long.blocks


def test_a_prefill_in_flight_is_kept_free_once(planned: Planned) -> None:
    pool = make_pool(planned("gpt-oss-120b"), 8 * GIB)
    assert isinstance(pool, VllmPool)
    [limit] = pool.limits(workload(Request(32_768)), "peak")
    extra = pool.need(32_768, 16_384) - pool.need(32_768, 1)
    assert limit.requests == pytest.approx((pool.blocks - extra) / pool.need(32_768, 1))
    assert f"{extra:,} kept for one prefill in flight" in limit.reason


def test_the_window_pool_of_sglang(planned: Planned) -> None:
    """cell = full rows + 0.8 x window rows; the window pool has 0.8 as many tokens."""
    pool = make_pool(planned("gpt-oss-120b", engine="sglang"), 8 * GIB)
    assert pool.size.tokens == int(8 * GIB // (36_864 * 1.8))
    assert pool.size.window_tokens == int(pool.size.tokens * 0.8)
    names = {limit.name: limit for limit in pool.limits(workload(Request(1_000)), "peak")}
    assert names["window"].reason.startswith("258 window tokens a request")
    assert set(names) == {"tokens", "window", "slots"}


def test_sglang_without_a_window_pool_keeps_every_token(planned: Planned) -> None:
    made = planned("gemma-3-27b", engine="sglang")
    assert made.token_bytes == 496 * 1024
    assert any("no window pool for Gemma3ForConditionalGeneration" in note for note in made.notes)


def test_a_model_of_windows_only_in_sglang(planned: Planned) -> None:
    made = planned("mistral-7b-v0.1", engine="sglang", hybrid=True)
    assert made.token_bytes == 131_072
    assert make_pool(made, 8 * GIB).size.tokens == 65_536


def test_the_state_pool_of_sglang(planned: Planned) -> None:
    """States get 0.9 / 1.9 of the pool, one slot is padding, 5 slots a request with radix cache, 1 without."""
    made = planned("qwen3-next-80b", engine="sglang")
    pool = make_pool(made, 40 * GIB)
    assert isinstance(pool, SglangPool)
    slots = (int(40 * GIB * 9 / 19) - made.state_bytes) // made.state_bytes
    assert pool.size.state_slots == slots
    assert pool.size.tokens == (40 * GIB - (slots + 1) * made.state_bytes) // 24_576
    plain = make_pool(planned("qwen3-next-80b", engine="sglang", prefix_caching=False), 40 * GIB)
    load = workload(Request(100))
    assert [{limit.name: limit.requests for limit in p.limits(load, "peak")}["state"] for p in (pool, plain)] == [
        slots // 5, slots]


@pytest.mark.parametrize(("engine", "slots", "expected"), [("vllm", 8, 8), ("sglang", 8, 8), ("vllm", None, 2457)])
def test_slots(model: Callable[[str], Any], engine: Any, slots: int | None, expected: int) -> None:
    load = workload(Request(80))
    found = estimate(model("llama-3-70b"), Deployment(engine=engine, slots=slots), Budget(60 * GIB), load)
    assert found.at["peak"].requests == expected
    assert found.at["peak"].bound.name == ("tokens" if slots is None else "slots")


def test_sglang_has_slots_by_default(model: Callable[[str], Any]) -> None:
    """2,048 to 4,096 by tokens / context x 512, never more than tokens / 2."""
    def slots(pool: int) -> float:
        found = estimate(model("llama-3-8b"), Deployment(engine="sglang"), Budget(pool), workload(Request(1)))
        return {limit.name: limit.requests for limit in found.at["peak"].limits}["slots"]

    assert slots(131_072 * 1000) == 500
    assert slots(131_072 * 8192) == 2048
    assert slots(131_072 * 8192 * 6) == 3072
    assert slots(131_072 * 8192 * 100) == 4096


def test_a_mix_is_weighted(model: Callable[[str], Any]) -> None:
    mix = workload(Request(16, weight=3), Request(1600, weight=1))
    found = estimate(model("llama-3-70b"), Deployment(), Budget(60 * GIB), mix)
    assert found.at["peak"].bound.requests == pytest.approx(12_288 / ((3 * 1 + 100) / 4))
    assert "weights are shares of the running requests, not of arrivals" in found.notes


def test_a_pool_too_small_holds_nobody(model: Callable[[str], Any]) -> None:
    found = estimate(model("llama-3-70b"), Deployment(), Budget(1_000_000), workload(Request(100)))
    assert found.size is not None and found.size.blocks == 0
    assert found.at["peak"].requests == 0
