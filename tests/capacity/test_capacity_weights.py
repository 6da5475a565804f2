"""Counted parameters against the totals the publishers name (model cards), and the pool of a GPU that follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from diagnoser.capacity import Deployment, Gpu, Model, budget, model_from
from diagnoser.errors import CapacityError

GIB = 1024**3
Models = Callable[[str], Model]


@pytest.mark.parametrize(("name", "billions"), [
    ("llama-3-8b", 8.03), ("llama-3-70b", 70.6), ("llama-3.1-405b", 405.9), ("qwen2.5-7b", 7.62), ("qwen2.5-72b", 72.7),
    ("qwen3-32b", 32.8), ("qwen3-235b-a22b", 235.1), ("mixtral-8x7b", 46.7), ("mistral-7b-v0.1", 7.24),
    ("deepseek-v3", 671.0), ("deepseek-v3.2", 671.9), ("gpt-oss-20b", 20.9), ("gpt-oss-120b", 116.8),
    ("gemma-3-27b", 27.0), ("llama-4-scout", 107.8), ("qwen3-next-80b", 80.0), ("jamba-1.5-mini", 51.6),
    ("mimo-v2-flash", 309.0), ("nemotron-3-nano-30b", 31.6),
])
def test_parameters(model: Models, name: str, billions: float) -> None:
    weights = model(name).weights
    assert weights is not None
    assert weights.parameters / 1e9 == pytest.approx(billions, rel=0.02)


@pytest.mark.parametrize(("name", "gigabytes"), [("gpt-oss-120b", 65.2), ("gpt-oss-20b", 13.8), ("llama-3-70b", 141.1)])
def test_checkpoint_sizes(model: Models, name: str, gigabytes: float) -> None:
    weights = model(name).weights
    assert weights is not None
    assert weights.bytes(2) / 1e9 == pytest.approx(gigabytes, rel=0.02)


@pytest.mark.parametrize(("quantisation", "bits"), [
    ({"quant_method": "awq", "bits": 4}, 4.25), ({"quant_method": "fp8"}, 8.0), ({"quant_method": "modelopt",
     "quant_algo": "NVFP4"}, 4.5), ({"quant_method": "compressed-tensors"}, 8.0),
])
def test_quantised_weights(quantisation: dict[str, Any], bits: float) -> None:
    config = {
        "model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 1,
        "hidden_size": 256, "intermediate_size": 512, "vocab_size": 1000, "torch_dtype": "bfloat16",
    }
    plain, small = model_from(config).weights, model_from({**config, "quantization_config": quantisation}).weights
    assert plain is not None and small is not None
    assert (small.parameters, small.bits, small.dense) == (plain.parameters, bits, 512_000)
    assert small.bytes(2) < plain.bytes(2)


def test_memory_of_a_gpu(model: Models) -> None:
    gpu = Gpu(80 * GIB, weights=160 * GIB, reserve=2 * GIB, fraction=0.9)
    found = budget(model("llama-3-70b"), Deployment(tp=8), gpu)
    assert (found.bytes_per_gpu, found.error_bytes) == (int(80 * GIB * 0.9) - 22 * GIB, 0)


def test_what_is_assumed_is_said(model: Models) -> None:
    found = budget(model("llama-3-70b"), Deployment(tp=8), Gpu(80 * GIB))
    assert found.error_bytes > 2 * GIB
    assert "memory fraction 0.92; activations and CUDA graphs take 3 GiB (assumed, +-2 GiB)" in found.notes
    weights = "weights 131.41 GiB estimated: 70.6e9 parameters, 2 bytes each, +-3%; split evenly over 8 GPUs"
    assert weights in found.notes


def test_sglang_keeps_ten_gib_outside(model: Models) -> None:
    found = budget(model("llama-3-8b"), Deployment(engine="sglang"), Gpu(80 * GIB, weights=16 * GIB))
    assert found.bytes_per_gpu == pytest.approx(54 * GIB, abs=2)
    assert found.notes[0].startswith("mem_fraction_static 0.875 (assumed")


def test_weights_that_do_not_fit(model: Models) -> None:
    with pytest.raises(CapacityError, match=r"no room for a KV pool: weights take 131\.41 GiB a GPU"):
        budget(model("llama-3-70b"), Deployment(), Gpu(80 * GIB))


@pytest.mark.parametrize("fraction", [0.0, -1.0, 1.5])
def test_fractions_out_of_range(model: Models, fraction: float) -> None:
    with pytest.raises(CapacityError, match="must lie in"):
        budget(model("llama-3-8b"), Deployment(), Gpu(80 * GIB, fraction=fraction))


def test_nothing_to_estimate_from() -> None:
    bare = model_from({"num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 8, "torch_dtype": "bfloat16"})
    with pytest.raises(CapacityError, match="give --weights"):
        budget(bare, Deployment(), Gpu(80 * GIB))
