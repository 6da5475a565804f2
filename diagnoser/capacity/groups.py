"""How vLLM groups the layers of a hybrid model, and what a block costs.

Shape of vllm/v1/core/kv_cache_utils.py get_kv_cache_groups and vllm/platforms/interface.py _align_hybrid_block_size
(0.32.0): one group if all layers need the same tokens; else layers of one kind are split into groups of as many layers
as the smallest kind has (the largest, if that is less than 1.5 times as many), padded; a block id costs one page in
every layer of a group, and a request draws blocks for every group.
"""

from __future__ import annotations

from dataclasses import dataclass

from diagnoser.capacity.layers import GROWING, Kind
from diagnoser.capacity.plan import Cache, Plan
from diagnoser.errors import CapacityError

PADDING_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share a block table: `block` tokens a block (states: one state a block).

    `page` = bytes of one layer's page on one GPU, 0 where pages differ from layer to layer.
    """

    kind: Kind
    caches: tuple[Cache, ...]
    block: int
    page: int

    @property
    def tokens(self) -> int:
        """Tokens of a request that one block id holds: each DCP rank stores its share of them."""
        return self.block * self.caches[0].shards

    def blocks(self, tokens: int, in_flight: int, states: int) -> int:
        """Blocks a request of `tokens` tokens holds with `in_flight` of them not yet settled."""
        window, need = self.caches[0].window, -(-tokens // self.tokens)
        if self.kind is Kind.STATE:
            return states
        if self.kind is Kind.SLIDING:
            return min(need, -(-(window - 1 + in_flight) // self.block) + 1)
        if self.kind is Kind.CHUNKED:
            return min(need, -(-(window + in_flight) // self.block))
        return need

    def bytes(self, stage: int) -> int:
        """Bytes of one block id on a GPU of this stage."""
        here = [cache for cache in self.caches if cache.stage == stage]
        return sum(self.page or cache.row * self.block or cache.state for cache in here)


def groups_of(plan: Plan, notes: list[str]) -> tuple[Group, ...]:
    """The groups of this plan. Appends to `notes` what the grouping changed or wastes."""
    block = _block_size(plan, notes)
    if len({("growing" if cache.kind in GROWING else cache.kind, cache.window) for cache in plan.caches}) == 1:
        return (_single(plan, block),)
    buckets, page = _buckets(plan, block, notes)
    counts = [len(caches) for caches, _ in buckets]
    size = max(counts) if max(counts) < PADDING_FACTOR * min(counts) else min(counts)
    groups: list[Group] = []
    for caches, own_block in buckets:
        parts = -(-len(caches) // size)
        if parts * size != len(caches):
            notes.append(f"{parts} groups of {size} hold {len(caches)} layers, the rest is padding")
        groups += [Group(caches[0].kind, tuple(caches[part::parts]), own_block, page) for part in range(parts)]
    return tuple(groups)


def _single(plan: Plan, block: int) -> Group:
    pages = {cache.row * block or cache.state for cache in plan.caches}
    return Group(plan.caches[0].kind, plan.caches, block, pages.pop() if len(pages) == 1 else 0)


def _block_size(plan: Plan, notes: list[str]) -> int:
    """Tokens a block; enlarged until an attention page holds a state (with MLA a multiple of 128)."""
    block = plan.deployment.page
    rows = [cache.row for cache in plan.caches if cache.row]
    state = max((cache.state for cache in plan.caches), default=0)
    if not state or not rows:
        return block
    align = max(block, 128 if any(cache.kind is Kind.LATENT for cache in plan.caches) else 16)
    enlarged = align * -(-state // (align * max(rows)))
    if enlarged > block:
        notes.append(f"block size {enlarged}: vLLM enlarges it so that a page of attention holds a state")
    return max(block, enlarged)


def _buckets(plan: Plan, block: int, notes: list[str]) -> tuple[list[tuple[list[Cache], int]], int]:
    """Layers of one kind and size with their block size, and the page all share: small ones get more tokens."""
    page = max(cache.row * block or cache.state for cache in plan.caches)
    found: dict[tuple[object, ...], tuple[list[Cache], int]] = {}
    for cache in plan.caches:
        own = cache.row * block
        if own and page % own and cache.kind is Kind.LATENT:
            raise CapacityError(f"{plan.model.name}: MLA pages of {own} bytes do not divide the common page of {page}")
        tokens = block * (page // own) if own and page % own == 0 else block
        found.setdefault((cache.kind, cache.window, cache.row, cache.state), ([], tokens))[0].append(cache)
    if len({cache.row for cache in plan.caches if cache.row}) > 1:
        notes.append("layers of unequal size: pages made equal; vLLM's block-outermost layouts pack them tighter")
    return list(found.values()), page
