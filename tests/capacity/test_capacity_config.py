"""Configs in every form: what each layer is, and which field an error names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diagnoser.capacity import Deployment, Kind, Model, load_model, model_from, plan
from diagnoser.errors import CapacityError

BASE: dict[str, Any] = {
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 512,
    "torch_dtype": "bfloat16",
}


def kinds(**fields: Any) -> str:
    """The layers of BASE with these fields, one letter each (Falcon-H1: two a layer)."""
    letters = {Kind.FULL: "F", Kind.LATENT: "L", Kind.SLIDING: "S", Kind.CHUNKED: "C", Kind.STATE: "M", Kind.NONE: "-"}
    return "".join(letters[layer.kind] for layer in model_from({**BASE, **fields}).layers)


GDN = {
    "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
}
MAMBA1 = {"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2}
MAMBA2 = {"mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_d_conv": 4}
NEMOTRON = {"mamba_num_heads": 8, "mamba_head_dim": 64, "ssm_state_size": 128, "conv_kernel": 4, "n_groups": 8}
KIMI = {"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4, "kda_layers": [1, 2, 3], "full_attn_layers": [4]}


@pytest.mark.parametrize(("fields", "expected"), [
    ({}, "FFFF"),
    ({"model_type": "mistral", "sliding_window": 64}, "SSSS"),
    ({"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": False}, "FFFF"),
    ({"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": True, "max_window_layers": 3}, "FFFS"),
    ({"model_type": "gemma2", "sliding_window": 64}, "SFSF"),
    ({"model_type": "gemma3_text", "sliding_window": 64, "sliding_window_pattern": 3}, "SSFS"),
    ({"model_type": "gpt_oss", "sliding_window": 64}, "SFSF"),
    ({"layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 64}, "SFSF"),
    ({"hybrid_layer_pattern": [0, 1, 1, 0], "sliding_window": 64}, "FSSF"),
    ({"model_type": "llama4_text"}, "CCCF"),
    ({"model_type": "llama4_text", "no_rope_layers": [1, 0, 1, 0]}, "CFCF"),
    ({**GDN}, "MMMF"),
    ({**GDN, "full_attention_interval": 2}, "MFMF"),
    ({**MAMBA1, "attn_layer_period": 4, "attn_layer_offset": 1}, "MFMM"),
    ({**MAMBA2, "layer_types": ["mamba", "mamba", "attention", "mamba"]}, "MMFM"),
    ({**MAMBA2, "model_type": "falcon_h1"}, "FMFMFMFM"),
    ({**NEMOTRON, "hybrid_override_pattern": "M-*E"}, "M-F-"),
    ({"linear_attn_config": KIMI}, "MMMF"),
    ({"linear_attn_config": KIMI, "kv_lora_rank": 512, "qk_rope_head_dim": 64}, "MMML"),
    ({"model_type": "minimax", "attn_type_list": [0, 1, 0, 1], "head_dim": 64}, "MFMF"),
    ({"layer_types": ["conv", "full_attention"] * 2, "conv_L_cache": 3}, "MFMF"),
    ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, "LLLL"),
    ({"num_kv_shared_layers": 2}, "FF--"),
    ({"cross_attention_layers": [1]}, "F-FF"),
])
def test_layer_patterns(fields: dict[str, Any], expected: str) -> None:
    assert kinds(**fields) == expected


@pytest.mark.parametrize(("changes", "said"), [
    ({"num_hidden_layers": None}, "no field num_hidden_layers"),
    ({"num_hidden_layers": "4"}, "field num_hidden_layers is '4'"),
    ({"num_hidden_layers": True}, "field num_hidden_layers is True"),
    ({"hidden_size": None}, "no field hidden_size"),
    ({"num_key_value_heads": None, "num_attention_heads": None}, "no field num_attention_heads"),
    ({"kv_lora_rank": 512}, "no field qk_rope_head_dim"),
    ({"kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_topk": 64}, "no field index_head_dim"),
    ({"sliding_window": 64}, "no field layer_types"),
    ({"sliding_window": 64, "use_sliding_window": True}, "no field max_window_layers"),
    ({"layer_types": ["sliding_attention"] * 4}, "no field sliding_window"),
    ({"layer_types": ["hyper_attention"] * 4}, "unknown layer types hyper_attention"),
    ({"layer_types": ["full_attention"]}, "names 1 of 4 layers"),
    ({"layer_types": ["mamba"] * 4}, "none of the fields linear_num_value_heads"),
    ({**GDN, "linear_key_head_dim": None}, "no field linear_key_head_dim"),
    ({"compress_ratios": [0, 4]}, "field compress_ratios"),
])
def test_errors_name_the_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(CapacityError, match=said):
        model_from({**BASE, **changes})


def test_nested_configs() -> None:
    flat = model_from(BASE)
    nested = model_from({"architectures": ["X"], "text_config": BASE, "vision_config": {"num_hidden_layers": 99}})
    deeper = model_from({"thinker_config": {"text_config": BASE}})
    assert flat.layers == nested.layers == deeper.layers
    assert nested.architecture == "X"


def test_multi_query_and_lists_of_heads() -> None:
    def heads(**fields: Any) -> list[int]:
        return [layer.kv_heads for layer in model_from({**BASE, **fields}).layers]

    assert heads(num_key_value_heads=None, multi_query=True) == [1, 1, 1, 1]
    assert heads(num_key_value_heads=None) == [8, 8, 8, 8]
    assert heads(num_key_value_heads=[1, 2, 4, 8]) == [1, 2, 4, 8]


def test_keys_and_values_of_unequal_size(model: Callable[[str], Model]) -> None:
    """MiMo-V2-Flash: 192 + 128 elements, 4 heads in 9 full layers, 8 in 39 windows of 128."""
    made = plan(model("mimo-v2-flash"), Deployment())
    assert made.token_bytes == 9 * 4 * (192 + 128) * 2
    assert made.window_bytes() == 39 * 128 * 8 * (192 + 128) * 2


def test_layers_that_share_an_index(model: Callable[[str], Model]) -> None:
    """GLM-5.2 computes its top-k in 21 of 78 layers."""
    made = plan(model("glm-5.2"), Deployment())
    assert made.token_bytes == 78 * 576 * 2 + 21 * 132
    assert "layers that reuse another layer's top-k (indexer_types) keep no index key" in made.notes


def test_gemma_4_has_its_own_global_heads(model: Callable[[str], Model]) -> None:
    assert plan(model("gemma-4-26b-a4b"), Deployment()).token_bytes == 5 * 2 * (512 + 512) * 2


def test_encoder_decoder_counts_the_decoder() -> None:
    found = model_from({"is_encoder_decoder": True, "decoder_layers": 2, "num_hidden_layers": 9, "encoder_layers": 9,
                        "decoder_attention_heads": 4, "d_model": 64, "torch_dtype": "float16"})
    assert len(found.layers) == 2
    assert found.layers[0].k_dim == 16
    assert any("cross-attention" in note for note in found.notes)


def test_dtypes_and_cache_schemes() -> None:
    assert model_from({**BASE, "torch_dtype": "float32"}).dtype == "bfloat16"
    assert "bfloat16 assumed" in model_from({**BASE, "torch_dtype": None}).notes[0]
    scheme = {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    eight = plan(model_from({**BASE, "quantization_config": scheme}), Deployment())
    assert (eight.kv_dtype, eight.token_bytes * 2) == ("fp8", plan(model_from(BASE), Deployment()).token_bytes)
    modelopt = {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}
    assert plan(model_from({**BASE, "quantization_config": modelopt}), Deployment()).kv_dtype == "fp8"


@pytest.mark.parametrize(("content", "said"), [
    ("[]", "is no config.json"), ("{", "is no JSON"), ("\udcff", "cannot be read"),
])
def test_files_that_are_no_config(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(CapacityError, match=said):
        load_model(file)
    with pytest.raises(CapacityError, match="cannot be read"):
        load_model(tmp_path / "other.json")


def test_a_folder_is_enough(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BASE))
    assert len(load_model(tmp_path).layers) == 4


def test_every_shipped_model_reads(model: Callable[[str], Model]) -> None:
    names = sorted(path.stem for path in (Path(__file__).parents[1] / "data" / "models").glob("*.json"))
    assert len(names) >= 16
    for name in names:
        assert plan(model(name), Deployment()).token_bytes > 0
