"""Parameters of a model counted from its config, and what they weigh. Within ERROR_DENSE or ERROR_QUANTISED.

Counted: embeddings, attention, MLP or experts, mixers of states. Not counted: norms, biases, vision towers, MTP layers.
Against the published totals of 19 models the count is within 2 % (tests/capacity/test_capacity_weights.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from diagnoser.capacity.fields import Fields
from diagnoser.capacity.layers import Kind, Layer, Weights

ERROR_DENSE, ERROR_QUANTISED = 0.03, 0.05
BITS = {"fp8": 8.0, "fbgemm_fp8": 8.0, "mxfp4": 4.25, "nvfp4": 4.5, "awq": 4.25, "gptq": 4.25, "bitsandbytes": 4.5}
"""Bits a quantised parameter including its scales: mxfp4 4 + 8/32, nvfp4 4 + 8/16, 4-bit groups of 128 4 + 32/128."""


def weights_of(fields: Fields, layers: Sequence[Layer]) -> Weights | None:
    """The parameters, or None where the config lacks what is needed to count them."""
    hidden, vocabulary = fields.number("hidden_size", "n_embd", "d_model"), fields.anywhere("vocab_size")
    if hidden is None or not isinstance(vocabulary, int):
        return None
    embeddings = vocabulary * hidden * (1 if fields.anywhere("tie_word_embeddings") is True else 2)
    mixers = sum(_mixer(fields, layer, hidden) for layer in layers)
    plain, experts = _mlps(fields, hidden, 1 + max((layer.index for layer in layers), default=-1))
    return _split(fields, embeddings, mixers + plain, experts)


def _split(fields: Fields, embeddings: int, linear: int, experts: int) -> Weights:
    quantisation = fields.anywhere("quantization_config")
    method = str(quantisation.get("quant_method", "")) if isinstance(quantisation, dict) else ""
    if not method:
        return Weights(embeddings + linear + experts)
    algorithm = str(quantisation.get("quant_algo", method)).lower()
    bits = quantisation.get("bits") or quantisation.get("weight_bits")
    size = float(bits) + 0.25 if isinstance(bits, int) else BITS.get(algorithm, BITS.get(method, 8.0))
    if method == "mxfp4":
        return Weights(embeddings + linear, experts, size)
    return Weights(embeddings, linear + experts, size)


def _mixer(fields: Fields, layer: Layer, hidden: int) -> int:
    heads = fields.number("num_attention_heads", "n_head") or 1
    if layer.kind is Kind.NONE:
        return 0
    if layer.state is not None:
        state = layer.state
        gate = 2 * state.inner + 2 * state.groups * state.group_dim
        return hidden * gate + state.inner * hidden
    if layer.kind is Kind.LATENT:
        return _latent(fields, layer, hidden, heads)
    gate = 2 if fields.model_type.startswith(("qwen3_next", "qwen3_5")) else 1
    queries = heads * layer.k_dim * gate + heads * layer.v_dim
    return hidden * (queries + layer.kv_heads * (layer.k_dim + layer.v_dim))


def _latent(fields: Fields, layer: Layer, hidden: int, heads: int) -> int:
    nope, value = fields.number("qk_nope_head_dim") or 128, fields.number("v_head_dim") or 128
    rank = fields.number("q_lora_rank")
    width = heads * (nope + layer.rope_dim)
    query = rank * (hidden + width) if rank else hidden * width
    indexer = (rank or hidden) * (fields.number("index_n_heads") or 0) * layer.index_dim + hidden * layer.index_dim
    down, up = hidden * (layer.k_dim + layer.rope_dim), layer.k_dim * heads * (nope + value)
    return query + down + up + heads * value * hidden + indexer


def _mlps(fields: Fields, hidden: int, count: int) -> tuple[int, int]:
    """Parameters of all MLPs: (dense and shared, routed experts)."""
    width = fields.number("intermediate_size", "n_inner", "ffn_dim") or 4 * hidden
    experts = fields.number("n_routed_experts", "num_local_experts", "num_experts") or 0
    if fields.get("hybrid_override_pattern") is not None:
        return _nemotron(fields, hidden, width, experts)
    if experts <= 1:
        return 3 * hidden * (fields.number("intermediate_size_mlp") or width) * count, 0
    sparse = [index for index in range(count) if _is_sparse(fields, index)]
    each = 3 * hidden * (fields.number("moe_intermediate_size") or width)
    shared = fields.number("shared_expert_intermediate_size")
    if shared is None:
        shared = (fields.number("moe_intermediate_size") or width) * (fields.number("n_shared_experts") or 0)
    if fields.model_type in ("llama4", "llama4_text"):
        shared = width
    dense = 3 * hidden * (fields.number("intermediate_size_mlp") or width) * (count - len(sparse))
    return dense + len(sparse) * (3 * hidden * shared + hidden * experts), len(sparse) * experts * each


def _is_sparse(fields: Fields, index: int) -> bool:
    if index < (fields.number("first_k_dense_replace") or 0) or index in (fields.get("mlp_only_layers") or ()):
        return False
    listed = fields.get("moe_layer_freq")
    if isinstance(listed, list):
        return index < len(listed) and bool(listed[index])
    period = fields.number("expert_layer_period")
    if period:
        return index % period == (fields.number("expert_layer_offset") or 0)
    step = fields.number("interleave_moe_layer_step", "decoder_sparse_step") or 1
    return (index + 1) % step == 0


def _nemotron(fields: Fields, hidden: int, width: int, experts: int) -> tuple[int, int]:
    """Nemotron-H: MLPs are layers of their own, with two matrices (squared ReLU)."""
    pattern = str(fields.get("hybrid_override_pattern"))
    each = 2 * hidden * (fields.number("moe_intermediate_size") or width)
    shared = 2 * hidden * (fields.number("moe_shared_expert_intermediate_size") or 0) + hidden * experts
    return pattern.count("-") * 2 * hidden * width + pattern.count("E") * shared, pattern.count("E") * experts * each
