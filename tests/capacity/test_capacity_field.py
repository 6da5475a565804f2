"""Numbers that real engines printed in public threads; each is recomputed from the model's config."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diagnoser.capacity import Deployment, Plan, make_pool, model_from, plan
from diagnoser.capacity.vllm import VllmPool

GIB = 1024**3


def test_sglang_deepseek_v32_with_index_keys(planned: Callable[..., Plan]) -> None:
    """sgl-project/sglang#11309: 975,424 tokens in 43.67 GB with index keys; 1,462,784 in 54.52 GB counted without."""
    made = planned("deepseek-v3.2", engine="sglang", kv_dtype="fp8_ds_mla")
    assert 975_424 * made.token_bytes / GIB == pytest.approx(43.67, abs=0.005)
    assert 1_462_784 * (made.token_bytes - 61 * 132) / GIB == pytest.approx(54.52, abs=0.01)


def test_sglang_qwen3_235b_on_four_gpus(planned: Callable[..., Plan]) -> None:
    """vllm-project/vllm#21348: SGLang holds 367,404 tokens in K 8.23 GB + V 8.23 GB a GPU."""
    made = planned("qwen3-235b-a22b", engine="sglang", tp=4)
    assert 367_404 * made.token_bytes_per_gpu / GIB == pytest.approx(2 * 8.23, abs=0.01)


def test_vllm_qwen3_235b_on_four_gpus(planned: Callable[..., Plan]) -> None:
    """vllm-project/vllm#21348: vLLM made 178,880 tokens of 8.11 GiB a GPU; 1.1 % more are computed."""
    size = make_pool(planned("qwen3-235b-a22b", tp=4), int(8.11 * GIB)).size
    assert size.tokens == pytest.approx(178_880, rel=0.012)


def test_vllm_block_size_of_qwen3_next(planned: Callable[..., Plan]) -> None:
    """vllm-project/vllm#32492: "qwen3-next uses non-standard block size (544)"."""
    pool = make_pool(planned("qwen3-next-80b"), 40 * GIB)
    assert isinstance(pool, VllmPool)
    assert pool.size.block_size == 544
    assert [group.kind for group in pool.groups].count("state") == 3


def test_vllm_block_size_of_nemotron_nano() -> None:
    """vllm-project/vllm#24280: 672 tokens for NVIDIA-Nemotron-Nano-9B-v2 (states then in bfloat16)."""
    config = {
        "model_type": "nemotron_h", "num_hidden_layers": 2, "hybrid_override_pattern": "M*", "num_attention_heads": 40,
        "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 4480, "mamba_num_heads": 128, "mamba_head_dim": 80,
        "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4, "torch_dtype": "bfloat16",
    }
    made = plan(model_from(config), Deployment(state_dtype="bfloat16"))
    assert make_pool(made, GIB).size.block_size == 672
