"""Every worked number of the theory, and of the article that the product answers to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from diagnoser.capacity import Budget, Deployment, Plan, Request, Shape, estimate, plan, workload

KIB, MIB, GIB = 1024, 1024**2, 1024**3
Planned = Callable[..., Plan]


@pytest.mark.parametrize(("name", "settings", "bytes_per_token"), [
    ("llama-3-70b", {}, 327_680),
    ("deepseek-v3", {}, 70_272),
    ("deepseek-v3", {"draft_layers": 1}, 71_424),
    ("deepseek-v3", {"kv_dtype": "fp8"}, 35_136),
    ("deepseek-v3.2", {}, 78_324),
    ("deepseek-v3.2", {"kv_dtype": "fp8_ds_mla"}, 48_068),
    ("deepseek-v3.2", {"kv_dtype": "fp8"}, 48_068),
    ("gpt-oss-120b", {}, 36 * KIB),
    ("gemma-3-27b", {}, 80 * KIB),
    ("gemma-3-27b", {"hybrid": False}, 496 * KIB),
    ("llama-4-scout", {}, 48 * KIB),
    ("qwen3-next-80b", {}, 24 * KIB),
])
def test_bytes_a_token(planned: Planned, name: str, settings: dict[str, Any], bytes_per_token: int) -> None:
    assert planned(name, **settings).token_bytes == bytes_per_token


@pytest.mark.parametrize(("tp", "per_gpu", "aggregate"), [(1, 320, 320), (8, 40, 320), (16, 40, 640)])
def test_llama_70b_over_gpus(planned: Planned, tp: int, per_gpu: int, aggregate: int) -> None:
    made = planned("llama-3-70b", tp=tp)
    assert made.token_bytes_per_gpu == per_gpu * KIB
    assert made.token_bytes_aggregate == aggregate * KIB
    assert made.token_bytes == 320 * KIB


@pytest.mark.parametrize("tp", [1, 2, 8, 16])
def test_an_mla_row_is_whole_on_every_gpu(planned: Planned, tp: int) -> None:
    made = planned("deepseek-v3", tp=tp)
    assert made.token_bytes_per_gpu == 70_272
    assert made.token_bytes_aggregate == 70_272 * tp


def test_fp8_of_sparse_attention_is_not_half(planned: Planned) -> None:
    ratio = planned("deepseek-v3.2", kv_dtype="fp8_ds_mla").token_bytes / planned("deepseek-v3.2").token_bytes
    assert ratio == pytest.approx(0.61, abs=0.005)


@pytest.mark.parametrize(("flags", "tokens", "blocks"), [
    ("--pool-bytes 60GiB", 196_608, 12_288),
    ("--pool-total 60GiB --tp 8", 196_608, 12_288),
    ("--pool-bytes 60GiB --tp 8", 1_572_864, 98_304),
    ("--pool-bytes 60GB --block-size 1", 183_105, 183_105),
])
def test_the_60_gib_pool(data: Callable[..., dict[str, Any]], flags: str, tokens: int, blocks: int) -> None:
    found = data("llama-3-70b", flags)
    assert found["pool_tokens"] == tokens
    assert found["pool"]["blocks"] == blocks


@pytest.mark.parametrize(("length", "requests", "without_null_block"), [("32K", 48, 47), ("128K", 12, 11)])
def test_the_article(
    data: Callable[..., dict[str, Any]], length: str, requests: int, without_null_block: int
) -> None:
    """About 1.57 M tokens hold 48 requests of 32K, 12 of 128K; the null block takes one where they fit exactly."""
    found = data("llama-3.1-70b", f"--pool-bytes 60GiB --tp 8 --prompt {length}")
    assert (found["pool_tokens"], found["max_concurrency"], found["bound"]) == (1_572_864, requests, "tokens")
    assert f"an exact fit: without the null block {without_null_block} of the {requests} fit" in found["assumptions"]


def test_requests_of_128_ki(planned: Planned) -> None:
    deepseek, llama = planned("deepseek-v3").token_bytes, planned("llama-3.1-70b").token_bytes
    assert deepseek * 131_072 / 1e9 == pytest.approx(9.211, abs=0.0005)
    assert deepseek * 131_072 / GIB == pytest.approx(8.578, abs=0.0005)
    assert deepseek * 128_000 / 1e9 == pytest.approx(8.995, abs=0.0005)
    assert deepseek * 128_000 / GIB == pytest.approx(8.377, abs=0.0005)
    assert llama * 131_072 == 40 * GIB
    assert 60 * GIB / (llama * 131_072) == 1.5


@pytest.mark.parametrize(("in_flight", "mib"), [(1, 5.0625), (2048, 77.0625), (8192, 293.0625)])
def test_gpt_oss_windows(planned: Planned, in_flight: int, mib: float) -> None:
    made = planned("gpt-oss-120b")
    assert made.window_bytes() == 4.5 * MIB
    assert made.window_bytes(16, in_flight) == mib * MIB


def test_gemma_and_scout_windows(planned: Planned) -> None:
    assert planned("gemma-3-27b").window_bytes() == 416 * MIB
    assert planned("llama-4-scout").window_bytes() == 1.125 * GIB


@pytest.mark.parametrize(("dtype", "mib", "tokens"), [("bfloat16", 37.6875, 1608), ("float32", 73.6875, 3144)])
def test_qwen3_next_states(planned: Planned, dtype: str, mib: float, tokens: int) -> None:
    made = planned("qwen3-next-80b", state_dtype=dtype)
    assert made.state_bytes == mib * MIB
    assert made.state_bytes // made.token_bytes == tokens


def test_states_take_the_engines_dtype(planned: Planned) -> None:
    assert planned("qwen3-next-80b").state_bytes == 37.6875 * MIB
    assert planned("qwen3-next-80b", engine="sglang").state_bytes == 73.6875 * MIB


def test_short_requests_of_a_hybrid_are_bound_by_states(data: Callable[..., dict[str, Any]]) -> None:
    for engine in ("vllm", "sglang"):
        flags = f"--engine {engine} --pool-bytes 40GiB --prompt"
        assert data("qwen3-next-80b", f"{flags} 500")["bound"] == "state"
        assert data("qwen3-next-80b", f"{flags} 128K")["bound"] == "tokens"


def test_a_shape_without_a_config() -> None:
    llama = plan(Shape(80, kv_heads=8, head_dim=128).model(), Deployment())
    sparse = plan(Shape(61, kv_lora_rank=512, rope_dim=64, index_dim=128).model(), Deployment())
    scout = plan(Shape(48, kv_heads=8, head_dim=128, window=8192, window_layers=36, chunked=True).model(), Deployment())
    assert (llama.token_bytes, sparse.token_bytes, scout.token_bytes) == (327_680, 78_324, 48 * KIB)
    assert scout.window_bytes() == 1.125 * GIB


def test_mean_and_peak(model: Callable[[str], Any]) -> None:
    """A running request holds its prompt and half its output on average, both in the end."""
    load = workload(Request(3_000, 2_000))
    found = estimate(model("llama-3-70b"), Deployment(tp=8), Budget(60 * GIB), load)
    assert [found.at[moment].requests for moment in ("peak", "mean", "admission")] == [
        98_304 // 313, 98_304 // 250, 98_304 // 188]
