"""A model from its Hugging Face config.json: one Layer for each cache of each layer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diagnoser.capacity.fields import Fields, fields_of, load_fields
from diagnoser.capacity.layers import Kind, Layer, Model
from diagnoser.capacity.schedule import schedule
from diagnoser.capacity.states import state_of
from diagnoser.capacity.weights import weights_of
from diagnoser.errors import CapacityError


def load_model(path: Path) -> Model:
    """The model of a config.json or of a folder that holds one."""
    return model_of(load_fields(path))


def model_from(config: Mapping[str, Any], name: str = "config") -> Model:
    """The model of a config that is already parsed."""
    return model_of(fields_of(config, name))


def model_of(fields: Fields) -> Model:
    """The model these fields describe. Raises CapacityError that names the missing field or the unknown pattern."""
    _refuse(fields)
    notes: list[str] = []
    layers = _layers(fields, notes)
    return Model(
        name=fields.name, layers=layers, architecture=fields.architecture, dtype=_dtype(fields, notes),
        max_length=fields.number("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length"),
        mtp_layers=fields.number("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers") or 0,
        state_dtype=_state_dtype(fields), cache_dtype=_cache_dtype(fields), weights=weights_of(fields, layers),
        notes=tuple(notes),
    )


def _refuse(fields: Fields) -> None:
    if fields.get("compress_ratios") is not None:
        raise CapacityError(
            f"{fields.name}: field compress_ratios: compressed attention (DeepSeek-V4) keeps several pools whose sizes"
            " differ by engine and version; it is not computed. Read the engine's own kv_cache_size_tokens or"
            " max_total_num_tokens"
        )


def _layers(fields: Fields, notes: list[str]) -> tuple[Layer, ...]:
    encoder = fields.anywhere("is_encoder_decoder") is True
    count = fields.need(*(["decoder_layers"] if encoder else []), "num_hidden_layers", "n_layer", "num_layers",
                        why="the number of caches")
    kinds = schedule(fields, count)
    shared, crossed = fields.number("num_kv_shared_layers") or 0, set(fields.get("cross_attention_layers") or ())
    if shared:
        notes.append(f"the last {shared} layers read earlier layers' caches (num_kv_shared_layers) and keep none")
    if crossed or encoder:
        notes.append("cross-attention keeps the encoder's output once a request; it is not counted")
    if fields.get("indexer_types", "index_topk_pattern") is not None:
        notes.append("layers that reuse another layer's top-k (indexer_types) keep no index key")
    layers = []
    for index in range(count):
        drop = index >= count - shared or index in crossed
        layers += [_layer(fields, Kind.NONE if drop else kind, index) for kind in kinds[index]]
    return tuple(layers)


def _layer(fields: Fields, kind: Kind, index: int) -> Layer:
    if kind is Kind.NONE:
        return Layer(kind, index)
    if kind is Kind.STATE:
        return Layer(kind, index, state=state_of(fields))
    if fields.number("kv_lora_rank"):
        return _latent(fields, index)
    return _attention(fields, kind, index)


def _latent(fields: Fields, index: int) -> Layer:
    rank, rope = fields.need("kv_lora_rank", why="MLA"), fields.need("qk_rope_head_dim", why="MLA")
    return Layer(Kind.LATENT, index, kv_heads=1, k_dim=rank, rope_dim=rope, index_dim=_index_dim(fields, index))


def _index_dim(fields: Fields, index: int) -> int:
    """Elements of the index key of this layer: 0 unless sparse (index_topk), or if another's top-k is reused."""
    if fields.number("index_topk") is None:
        return 0
    types = fields.get("indexer_types", "index_topk_pattern")
    if types is not None and index < len(types) and types[index] in ("shared", "S"):
        return 0
    return fields.need("index_head_dim", why="the index keys of sparse attention")


def _attention(fields: Fields, kind: Kind, index: int) -> Layer:
    sliding = kind is Kind.SLIDING
    own = ("swa_num_key_value_heads",) if sliding else ("num_global_key_value_heads",)
    heads = fields.number(*own)
    if heads is None:
        heads = _kv_heads(fields, index)
    k_dim = fields.number("swa_head_dim" if sliding else "global_head_dim") or _head_dim(fields)
    v_dim = (fields.number("swa_v_head_dim") if sliding else None) or fields.number("v_head_dim") or k_dim
    window = 0
    if kind is not Kind.FULL:
        window = fields.need("attention_chunk_size" if kind is Kind.CHUNKED else "sliding_window", why="the window")
    return Layer(kind, index, kv_heads=heads, k_dim=k_dim, v_dim=v_dim, window=window)


def _kv_heads(fields: Fields, index: int) -> int:
    listed = fields.get("num_key_value_heads")
    if isinstance(listed, list) and index < len(listed):
        return int(listed[index])
    grouped = fields.number("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
    if grouped is not None:
        return grouped
    if fields.get("multi_query") is True:
        return 1
    return fields.need("num_attention_heads", "n_head", "decoder_attention_heads", why="the KV heads")


def _head_dim(fields: Fields) -> int:
    given = fields.number("head_dim", "kv_channels", "attention_head_dim")
    if given:
        return given
    hidden = fields.need("hidden_size", "n_embd", "d_model", why="head_dim = hidden_size / num_attention_heads")
    return hidden // fields.need("num_attention_heads", "n_head", "decoder_attention_heads", why="head_dim")


def _dtype(fields: Fields, notes: list[str]) -> str:
    dtype = str(fields.anywhere("torch_dtype", "dtype") or "").removeprefix("torch.")
    if not dtype:
        notes.append("the config names no dtype: bfloat16 assumed")
        return "bfloat16"
    if dtype == "float32":
        notes.append("the checkpoint is float32: engines serve it in bfloat16 or float16 unless told otherwise")
        return "bfloat16"
    return dtype


def _state_dtype(fields: Fields) -> str | None:
    if isinstance(fields.get("linear_attn_config"), dict):
        return "float32"
    named = fields.get("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    return None if named is None else str(named)


def _cache_dtype(fields: Fields) -> str | None:
    """fp8 where the checkpoint carries an FP8 KV scheme: both engines then take it for auto."""
    quantisation = fields.anywhere("quantization_config")
    if not isinstance(quantisation, dict):
        return None
    scheme = quantisation.get("kv_cache_scheme")
    eight = isinstance(scheme, dict) and scheme.get("num_bits") == 8 and scheme.get("type") == "float"
    return "fp8" if eight or str(quantisation.get("kv_cache_quant_algo", "")).lower() == "fp8" else None
