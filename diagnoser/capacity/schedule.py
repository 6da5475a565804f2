"""Which kind each layer of a model is: the many ways a config.json writes its layer pattern."""

from __future__ import annotations

from collections.abc import Callable

from diagnoser.capacity.fields import Fields
from diagnoser.capacity.layers import Kind
from diagnoser.errors import CapacityError

Kinds = tuple[Kind, ...]
"""The caches of one layer: usually one, two where attention and a state run side by side."""

FULL, SLIDING, CHUNKED, STATE, NONE = (Kind.FULL,), (Kind.SLIDING,), (Kind.CHUNKED,), (Kind.STATE,), (Kind.NONE,)
BOTH = (Kind.FULL, Kind.STATE)
WORDS: dict[str, Kinds] = {
    "full_attention": FULL, "attention": FULL, "global": FULL, "global_attention": FULL, "*": FULL, "full": FULL,
    "indexed_attention": FULL, "deepseek_sparse_attention": FULL,
    "sliding_attention": SLIDING, "sliding": SLIDING, "local": SLIDING, "local_attention": SLIDING,
    "sliding_window": SLIDING, "chunked_attention": CHUNKED,
    "linear_attention": STATE, "mamba": STATE, "mamba2": STATE, "M": STATE, "conv": STATE, "recurrent": STATE,
    "hybrid": BOTH, "mlp": NONE, "moe": NONE, "-": NONE, "E": NONE, "cross_attention": NONE,
}
PATTERN = {"gemma3_text": 6, "gemma3": 6, "cohere2": 4, "gemma2": 2}
"""Every n-th layer is full where the config does not say so (transformers' default of that model type)."""
ALL_SLIDING = frozenset({"mistral", "mixtral", "phi3", "phimoe", "starcoder2"})


def schedule(fields: Fields, count: int) -> list[Kinds]:
    """The caches of each of the `count` layers. Raises CapacityError when the pattern cannot be read."""
    for read in (_listed, _pattern_string, _period, _linear, _binary, _chunked, _sliding):
        kinds = read(fields, count)
        if kinds is not None:
            if len(kinds) < count:
                raise CapacityError(f"{fields.name}: the layer pattern names {len(kinds)} of {count} layers")
            return kinds[:count]
    return [FULL] * count


def _words(fields: Fields, field: str, words: list[object]) -> list[Kinds]:
    unknown = sorted({str(word) for word in words if str(word) not in WORDS})
    if unknown:
        raise CapacityError(f"{fields.name}: field {field} has unknown layer types {', '.join(unknown)}")
    return [WORDS[str(word)] for word in words]


def _listed(fields: Fields, count: int) -> list[Kinds] | None:
    for field in ("layer_types", "layers_block_type", "layer_block_types"):
        words = fields.get(field)
        if isinstance(words, list) and words:
            return _words(fields, field, words)
    if fields.model_type == "falcon_h1":
        return [BOTH] * count
    return None


def _pattern_string(fields: Fields, count: int) -> list[Kinds] | None:
    pattern = fields.get("hybrid_override_pattern")
    return _words(fields, "hybrid_override_pattern", list(pattern)) if isinstance(pattern, str) else None


def _each(count: int, pick: Callable[[int], Kinds]) -> list[Kinds]:
    return [pick(i) for i in range(count)]


def _period(fields: Fields, count: int) -> list[Kinds] | None:
    period = fields.number("attn_layer_period")
    if not period:
        return None
    offset = fields.number("attn_layer_offset") or 0
    return _each(count, lambda i: FULL if i % period == offset else STATE)


def _linear(fields: Fields, count: int) -> list[Kinds] | None:
    nested = fields.get("linear_attn_config")
    if isinstance(nested, dict) and isinstance(nested.get("kda_layers"), list):
        states = set(nested["kda_layers"])
        return _each(count, lambda i: STATE if i + 1 in states else FULL)
    if fields.get("linear_num_value_heads") is None:
        return None
    interval = fields.number("full_attention_interval") or 4
    return _each(count, lambda i: STATE if (i + 1) % interval else FULL)


def _binary(fields: Fields, count: int) -> list[Kinds] | None:
    for field, zero, one in (("hybrid_layer_pattern", FULL, SLIDING), ("attn_type_list", STATE, FULL)):
        flags = fields.get(field)
        if isinstance(flags, list):
            return [one if flag else zero for flag in flags]
    return None


def _chunked(fields: Fields, count: int) -> list[Kinds] | None:
    if fields.number("attention_chunk_size") is None or fields.model_type not in ("llama4", "llama4_text"):
        return None
    rope = fields.get("no_rope_layers")
    if isinstance(rope, list) and rope:
        return [CHUNKED if flag else FULL for flag in rope]
    interval = fields.number("no_rope_layer_interval") or 4
    return _each(count, lambda i: CHUNKED if (i + 1) % interval else FULL)


def _sliding(fields: Fields, count: int) -> list[Kinds] | None:
    if fields.number("sliding_window") is None or fields.get("use_sliding_window") is False:
        return None
    every = fields.number("sliding_window_pattern", "_sliding_window_pattern") or PATTERN.get(fields.model_type)
    if every:
        return _each(count, lambda i: SLIDING if (i + 1) % every else FULL)
    if fields.model_type == "gpt_oss":
        return _each(count, lambda i: FULL if i % 2 else SLIDING)
    if fields.get("use_sliding_window") is True:
        first = fields.need("max_window_layers", why="the layers that use the sliding window")
        return _each(count, lambda i: SLIDING if i >= first else FULL)
    if fields.model_type in ALL_SLIDING:
        return [SLIDING] * count
    raise CapacityError(f"{fields.name}: has sliding_window but no field layer_types that says which layers use it")
