"""vLLM's device pool in tokens, from one usage ratio and the labels of vllm:cache_config_info.

usage = used blocks / (N - 1), N = blocks of this engine with the null block (vllm/v1/core/block_pool.py); up to 0.10.0
the denominator was N and the null block counted as used, so that an idle engine reads 1/N. Cached blocks that nobody
holds count as free: what is free is known exactly, how much of it is evictable cache is not exported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diagnoser.engines.facts import value_of
from diagnoser.engines.versions import Span
from diagnoser.model import PoolState, Quantity, Range

_WHOLE = 1e-6
"""A block count this close to an integer is one: the ratio is printed with all digits."""
_HYBRID = "hybrid model: pool size is kv_cache_size_tokens, which holds for requests of max_model_len"
_NO_BLOCKS = "num_gpu_blocks is not on the page: pool size is kv_cache_size_tokens, the null block included"
_SPLIT = "the engine does not say which part of the free blocks is evictable cache"


@dataclass(frozen=True, slots=True)
class Geometry:
    """Size of one engine's pool: N blocks of `block` tokens, or only `tokens` where blocks do not tell."""

    blocks: int | None
    block: float | None
    tokens: float | None
    null_counted: bool
    reason: str = ""


def number_label(labels: Mapping[str, str], name: str) -> float | None:
    """A label as a number, None for "None" and for what is not there."""
    value = value_of(labels.get(name))
    return value if isinstance(value, float) else None


def geometry(labels: Mapping[str, str], ranks: Sequence[str], usages: Sequence[float], span: Span) -> Geometry:
    """The pool of each engine on the page. `usages` of all its engines check the number of blocks."""
    block = number_label(labels, "effective_attention_block_size") or number_label(labels, "block_size")
    total = number_label(labels, "num_gpu_blocks")
    tokens = number_label(labels, "kv_cache_size_tokens")
    counted = _null_counted(span, usages, total)
    candidates = _candidates(int(total), ranks, span) if total and total >= 1 else []
    blocks = _own_blocks(candidates, usages, counted)
    if not tokens:
        return Geometry(
            blocks, block, None, counted, "" if blocks and block else "the page does not say how large the pool is"
        )
    if not total:
        return Geometry(None, block, tokens, counted, _NO_BLOCKS)
    if block and tokens % block == 0 and int(tokens / block) in candidates:
        return Geometry(int(tokens / block), block, None, counted)
    return Geometry(blocks, block, tokens, counted, _HYBRID)


def _candidates(total: int, ranks: Sequence[str], span: Span) -> list[int]:
    """What num_gpu_blocks may be of one engine, best guess first: a sum over the engines of the frontend, or its own.

    Up to 0.9.2 only the last engine of a process is on the page; its rank then tells how many there are.
    """
    seen = len(ranks)
    highest = max((int(rank) for rank in ranks if rank.isdigit()), default=0) + 1
    counts = (highest, seen, 1) if span.before("0.10") else (seen, highest, 1)
    return [total // count for count in dict.fromkeys(counts) if total % count == 0]


def _own_blocks(candidates: Sequence[int], usages: Sequence[float], counted: bool) -> int | None:
    """The first candidate for which every engine's usage is a whole number of blocks, else the best guess."""
    fitting = (blocks for blocks in candidates if all(_fits(usage, blocks, counted) for usage in usages))
    return next(fitting, candidates[0] if candidates else None)


def _fits(usage: float, blocks: int, counted: bool) -> bool:
    used = usage * (blocks if counted else blocks - 1)
    return abs(used - round(used)) < _WHOLE


def _null_counted(span: Span, usages: Sequence[float], total: float | None) -> bool:
    """Does usage count the null block (up to 0.10.0)? Where the release is not known, the arithmetic decides."""
    if span.inside("0.10.2", ""):
        return False
    if span.before("0.10.1"):
        return True
    if not total or not usages:
        return False
    return all(_fits(usage, int(total), True) for usage in usages) and not all(
        _fits(usage, int(total), False) for usage in usages
    )


def used_ratio(usage: float, shape: Geometry) -> float:
    """The share of the usable pool that requests hold: the reported ratio without the null block."""
    if not shape.null_counted or not shape.blocks or shape.blocks <= 1:
        return usage
    return min(1.0, max(0.0, usage * shape.blocks - 1.0) / (shape.blocks - 1))


def pool(usage: float | None, shape: Geometry, caching: bool | None, computed: float | None) -> PoolState:
    """The three states in tokens. `computed` bounds the cache early in life: all tokens that were ever put into it."""
    capacity = _capacity(shape)
    if capacity is None or usage is None:
        return PoolState(capacity, reason=shape.reason or "no valid usage on this page")
    used = used_ratio(usage, shape) * capacity
    if shape.tokens is None and shape.block:
        steps = used / shape.block
        used = round(steps) * shape.block if abs(steps - round(steps)) < _WHOLE else used
    free = max(0.0, capacity - used)
    if caching is False:
        return PoolState(capacity, used, 0.0, free, shape.reason)
    most = free if computed is None else min(free, computed)
    reason = "; ".join(text for text in (shape.reason, _SPLIT) if text)
    return PoolState(capacity, used, _between(0.0, most), _between(free - most, free), reason)


def _capacity(shape: Geometry) -> float | None:
    if shape.tokens is not None:
        return shape.tokens
    return (shape.blocks - 1) * shape.block if shape.blocks and shape.block else None


def _between(low: float, high: float) -> Quantity:
    return low if low == high else Range(low, high)
