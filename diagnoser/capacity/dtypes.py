"""Bytes a token of one layer on one GPU: element sizes, scales, packed rows.

Sources: vLLM 0.32.0 vllm/v1/kv_cache_interface.py, vllm/model_executor/layers/attention/mla_attention.py:1365,
vllm/model_executor/models/deepseek_v2.py:731-735; SGLang 0.5.23 sglang/srt/model_executor/pool_configurator.py,
sglang/srt/mem_cache/kv_cache_configurator.py:3412-3475.
"""

from __future__ import annotations

from diagnoser.capacity.layers import Kind, Layer, Model, State
from diagnoser.errors import CapacityError

PLAIN = {
    "bfloat16": 2, "bf16": 2, "float16": 2, "fp16": 2, "half": 2, "float32": 4, "fp32": 4, "float": 4,
    "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_plain": 1, "int8": 1,
}
"""Bytes an element with no scale for each token (scales per tensor or none)."""
PER_HEAD = {"int8_per_token_head": 1.0, "fp8_per_token_head": 1.0}
"""As int8, and a 4-byte scale for K and for V of each head and token."""
PACKED = ("fp8_ds_mla", "nvfp4_ds_mla")
BLOCKED = ("mxfp8", "nvfp4")
KV_DTYPES = ("auto", *PLAIN, *PER_HEAD, *BLOCKED, *PACKED)
MX_BLOCK, NV_BLOCK, QUANT_BLOCK, SCALE = 32, 16, 128, 4


def resolve_kv_dtype(model: Model, asked: str) -> tuple[str, str]:
    """(KV dtype, the sentence to print about it). auto = the checkpoint's KV scheme, else the model dtype."""
    if asked not in KV_DTYPES:
        raise CapacityError(f"KV dtype {asked!r} is not one of {', '.join(KV_DTYPES)}")
    if asked == "auto" and model.cache_dtype:
        return model.cache_dtype, f"KV dtype {model.cache_dtype}: the checkpoint's KV scheme (auto)"
    dtype = model.dtype if asked == "auto" else asked
    if asked == "auto" and model.sparse:
        return dtype, (
            f"KV dtype {dtype} (auto); for sparse attention (DSA) engines may choose FP8 themselves, by GPU and"
            " backend: --kv-dtype fp8_ds_mla is then right"
        )
    if dtype in ("fp8", "fp8_e4m3") and model.sparse:
        return "fp8_ds_mla", (
            "KV dtype fp8_ds_mla: FP8 of sparse attention packs 656 bytes a row (FlashMLA);"
            " TRT-LLM and FlashInfer backends store 576: --kv-dtype fp8_plain"
        )
    if dtype not in KV_DTYPES:
        raise CapacityError(f"{model.name}: dtype {dtype!r} is not known; give --kv-dtype")
    return dtype, f"KV dtype {dtype}" + (" (auto: the model dtype)" if asked == "auto" else "")


def row_bytes(layer: Layer, heads: int, dtype: str) -> int:
    """Bytes a token of one attention or latent layer with `heads` KV heads on this GPU, without index keys."""
    if layer.kind is Kind.LATENT:
        return _latent_bytes(layer, dtype)
    per_head = layer.k_dim + layer.v_dim
    if dtype in PLAIN:
        return heads * per_head * PLAIN[dtype]
    if dtype in PER_HEAD:
        return heads * (per_head + 2 * SCALE)
    if dtype == "mxfp8":
        return heads * per_head + heads * per_head // MX_BLOCK
    if dtype == "nvfp4":
        return heads * sum(dim // 2 + dim // NV_BLOCK for dim in (layer.k_dim, layer.v_dim))
    raise CapacityError(f"KV dtype {dtype} packs MLA rows; this model keeps keys and values")


def _latent_bytes(layer: Layer, dtype: str) -> int:
    rank, rope = layer.k_dim, layer.rope_dim
    if dtype in PLAIN:
        return (rank + rope) * PLAIN[dtype]
    if dtype == "fp8_ds_mla":
        return rank + rank // QUANT_BLOCK * SCALE + rope * 2
    if dtype == "nvfp4_ds_mla":
        return rank // 2 + rank // NV_BLOCK + rope
    if dtype == "nvfp4":
        return (rank + rope) // 2 + (rank + rope) // NV_BLOCK
    raise CapacityError(f"KV dtype {dtype} is for keys and values; this model keeps MLA latents")


def index_bytes(layer: Layer) -> int:
    """Bytes a token of the index key: FP8 with a 4-byte scale for every 128 elements, 132 for index_head_dim 128."""
    return layer.index_dim + layer.index_dim // QUANT_BLOCK * SCALE


def state_dtypes(model: Model, asked: str, engine: str) -> tuple[int, int]:
    """Bytes an element of (convolution, recurrence). auto: the config's, else vLLM the model dtype, SGLang float32."""
    base = PLAIN.get(model.dtype, 2)
    named = asked if asked != "auto" else model.state_dtype
    if named is None:
        return base, base if engine == "vllm" else 4
    if named not in PLAIN:
        raise CapacityError(f"state dtype {named!r} is not known: bfloat16 or float32 are")
    return base, PLAIN[named]


def state_bytes(state: State, tp: int, sizes: tuple[int, int]) -> int:
    """Bytes of one state of one layer on one GPU. Groups that do not divide by `tp` are extended until they do."""
    if state.inner % tp or state.recurrent % tp:
        raise CapacityError(f"a state of {state.inner} channels cannot be spread over TP {tp}")
    groups = state.groups if state.groups % tp == 0 else tp
    channels = (state.inner + 2 * groups * state.group_dim) // tp
    return channels * (state.kernel - 1) * sizes[0] + state.recurrent // tp * sizes[1]
