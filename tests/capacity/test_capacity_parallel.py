"""TP, PP, DCP and DP: what is split, what is copied, and what the engines refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from diagnoser.capacity import Budget, Deployment, Plan, Request, Shape, estimate, make_pool, plan, workload
from diagnoser.errors import CapacityError

Planned = Callable[..., Plan]
GIB = 1024**3


def test_dcp_halves_a_row_where_tp_copies_it(planned: Planned) -> None:
    made = planned("llama-3-70b", tp=16, dcp=2)
    assert made.token_bytes_per_gpu == 20 * 1024
    assert made.token_bytes_aggregate == 320 * 1024


def test_dcp_divides_latents_and_doubles_the_pool(planned: Planned) -> None:
    one, eight = planned("deepseek-v3", tp=8), planned("deepseek-v3", tp=8, dcp=8)
    assert eight.token_bytes_per_gpu * 8 == one.token_bytes_per_gpu == 70_272
    assert eight.token_bytes_aggregate == 70_272
    assert make_pool(eight, 40 * GIB).size.tokens == 8 * make_pool(one, 40 * GIB).size.tokens


def test_index_keys_are_copied_under_dcp_in_sglang_only(planned: Planned) -> None:
    vllm = planned("deepseek-v3.2", tp=8, dcp=8)
    sglang = planned("deepseek-v3.2", tp=8, dcp=8, engine="sglang")
    assert vllm.token_bytes_per_gpu * 8 == 78_324
    assert sglang.token_bytes_per_gpu == 61 * 1152 / 8 + 61 * 132


def test_engines_agree_where_both_allow_dcp(planned: Planned) -> None:
    settings: dict[str, Any] = {"tp": 32, "dcp": 4}
    vllm, sglang = planned("llama-3-70b", **settings), planned("llama-3-70b", engine="sglang", **settings)
    assert vllm.token_bytes_per_gpu == sglang.token_bytes_per_gpu == 10 * 1024


@pytest.mark.parametrize(("settings", "said"), [
    ({"tp": 8, "dcp": 2}, "dcp 2 exceeds tp / kv_heads = 8 / 8"),
    ({"tp": 8, "dcp": 3}, "tp 8 cannot be divided by dcp 3"),
    ({"tp": 3}, "8 KV heads cannot be spread over TP 3"),
    ({"tp": 12}, "8 KV heads cannot be spread over TP 12"),
    ({"pp": 81}, "80 layers cannot be spread over PP 81"),
    ({"tp": 0}, "tp is 0"),
    ({"draft_layers": -1}, "draft_layers is -1"),
    ({"block_size": 0}, "block_size is 0"),
    ({"swa_ratio": 2.0}, "SWA ratio"),
    ({"kv_dtype": "fp6"}, "'fp6' is not one of auto"),
    ({"kv_dtype": "fp8_ds_mla"}, "packs MLA rows"),
])
def test_what_cannot_be(planned: Planned, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(CapacityError, match=said):
        planned("llama-3-70b", **settings)


def test_mxfp8_is_not_for_latents(planned: Planned) -> None:
    with pytest.raises(CapacityError, match="keeps MLA latents"):
        planned("deepseek-v3", kv_dtype="mxfp8")


def test_pipeline_stages(planned: Planned) -> None:
    """61 layers on 4 stages: 15, 15, 16, 15 (get_pp_indices); the draft layer comes to the last."""
    assert planned("deepseek-v3", pp=4).token_bytes_per_gpu == 16 * 1152
    assert planned("deepseek-v3", pp=4).token_bytes_aggregate == 61 * 1152
    drafted = planned("deepseek-v3", pp=4, draft_layers=2)
    assert [sum(cache.stage == stage for cache in drafted.caches) for stage in range(4)] == [15, 15, 16, 17]


def test_pipeline_of_a_hybrid_is_sized_by_its_largest_stage(planned: Planned) -> None:
    one, two = make_pool(planned("gpt-oss-120b"), 8 * GIB).size, make_pool(planned("gpt-oss-120b", pp=2), 4 * GIB).size
    assert one.block_bytes is not None and two.block_bytes is not None
    assert (one.block_bytes, two.block_bytes) == (18 * 16 * 2048, 9 * 16 * 2048)
    assert one.blocks == two.blocks


def test_data_parallel_ranks_are_separate_pools(data: Callable[..., dict[str, Any]]) -> None:
    found = data("llama-3-8b", "--pool-bytes 40GiB --dp 4 --prompt 8K")
    assert (found["pool_tokens"], found["pool_tokens_aggregate"]) == (327_680, 1_310_720)
    assert (found["max_concurrency"], found["max_concurrency_aggregate"]) == (40, 160)


@pytest.mark.parametrize(("dtype", "row"), [
    ("bfloat16", 512), ("fp32", 1024), ("fp8", 256), ("fp8_e5m2", 256), ("int8", 256), ("int8_per_token_head", 264),
    ("mxfp8", 264), ("nvfp4", 144),
])
def test_rows_of_one_head(dtype: str, row: int) -> None:
    made = plan(Shape(1, kv_heads=1, head_dim=128).model(), Deployment(kv_dtype=dtype))
    assert made.token_bytes == row


@pytest.mark.parametrize(("dtype", "row"), [
    ("bfloat16", 1152), ("fp8_plain", 576), ("fp8_ds_mla", 656), ("nvfp4_ds_mla", 352), ("nvfp4", 324),
])
def test_rows_of_a_latent(dtype: str, row: int) -> None:
    made = plan(Shape(1, kv_lora_rank=512, rope_dim=64, index_dim=128).model(), Deployment(kv_dtype=dtype))
    assert made.token_bytes == row + 132


def test_states_are_split_over_tp(planned: Planned) -> None:
    """Qwen3-Next on TP 32: 16 key heads are extended to 32 for the convolution; the recurrence is split."""
    one, many = planned("qwen3-next-80b"), planned("qwen3-next-80b", tp=32)
    conv = (4096 + 2 * 32 * 128) // 32 * 3 * 2
    assert many.state_bytes_per_gpu == 36 * (conv + 32 * 128 * 128 // 32 * 2)
    assert planned("qwen3-next-80b", tp=4).state_bytes_per_gpu * 4 == one.state_bytes
    with pytest.raises(CapacityError, match="cannot be spread over TP"):
        planned("jamba-1.5-mini", tp=3, dcp=1)


def test_speculation_and_prefix_cache_cost_states(planned: Planned) -> None:
    pools = [make_pool(planned("qwen3-next-80b", **more), 40 * GIB) for more in (
        {"prefix_caching": False}, {}, {"lookahead": 2})]
    load = workload(Request(100))
    fits = [pool.limits(load, "peak")[0].requests for pool in pools]
    assert fits[0] > fits[1] > fits[2]


def test_lookahead_and_block_rounding(model: Callable[[str], Any]) -> None:
    """17 tokens take two blocks of 16; 16 with one token of speculation too."""
    for request, ahead, blocks in ((17, 0, 2), (16, 0, 1), (16, 1, 2)):
        load = workload(Request(request))
        found = estimate(model("llama-3-70b"), Deployment(lookahead=ahead), Budget(60 * GIB), load)
        assert found.at["peak"].requests == 12_288 // blocks
