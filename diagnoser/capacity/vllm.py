"""vLLM: one pool of blocks that every group of layers draws from."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from diagnoser.capacity.groups import Group, groups_of
from diagnoser.capacity.layers import GROWING, WINDOWED, Kind
from diagnoser.capacity.plan import Plan
from diagnoser.capacity.pool import Limit, Size, slots_limit
from diagnoser.capacity.workload import Workload


@dataclass(frozen=True, slots=True)
class VllmPool:
    """A pool of `blocks` blocks for these groups. `length` = max_model_len where known."""

    plan: Plan
    groups: tuple[Group, ...]
    blocks: int
    block_bytes: int
    bytes_per_gpu: int
    length: int | None
    notes: tuple[str, ...]

    def need(self, tokens: int, in_flight: int) -> int:
        """Blocks of one request over all groups, with `in_flight` of its tokens not yet settled."""
        return sum(group.blocks(tokens, in_flight, self._states()) for group in self.groups)

    def _states(self) -> int:
        """Blocks of state a request holds: one, one more with prefix caching ("align"), one for each token ahead."""
        deployment = self.plan.deployment
        return (2 if deployment.prefix_caching else 1) + deployment.lookahead

    @property
    def exact(self) -> bool:
        """True when tokens are blocks x tokens a block: one group that keeps every token."""
        return len(self.groups) == 1 and self.groups[0].kind in GROWING

    @property
    def size(self) -> Size:
        """Tokens as kv_cache_size_tokens reports them: blocks / blocks of the longest request x its length."""
        block = min((group.block for group in self.groups if group.kind is not Kind.STATE), default=1)
        return Size(
            self.bytes_per_gpu, self._tokens(self.blocks), self._tokens(self.blocks - 1), block, self.blocks,
            self.block_bytes, tokens_exact=self.exact, notes=self.notes,
        )

    def _tokens(self, blocks: int) -> int:
        if self.exact:
            return max(0, blocks) * self.groups[0].tokens
        length = self.length or 0
        return max(0, blocks) * length // max(1, self.need(length, self.plan.deployment.in_flight))

    def limits(self, workload: Workload, moment: str) -> tuple[Limit, ...]:
        """The block pool, named after the layers that take most of a request's blocks, and the slots."""
        ahead, in_flight = self.plan.deployment.lookahead, self.plan.deployment.in_flight
        lengths = [tokens + ahead for tokens in workload.lengths(moment)]
        steady = [self.need(tokens, 1 + ahead) for tokens in lengths]
        extra = max(self.need(tokens, in_flight) - held for tokens, held in zip(lengths, steady, strict=True))
        extra = max(0, extra)
        each = workload.average(steady)
        reason = f"{each:,.0f} blocks a request of {self.blocks:,}"
        if extra:
            reason += f", {extra:,} kept for one prefill in flight"
        pool = Limit(self._name(lengths, workload), max(0, self.blocks - extra) / each, reason)
        return (pool, *slots_limit(self.plan.deployment.slots))

    def _name(self, lengths: list[int], workload: Workload) -> str:
        parts: dict[str, float] = defaultdict(float)
        for group in self.groups:
            name = "state" if group.kind is Kind.STATE else "window" if group.kind in WINDOWED else "tokens"
            parts[name] += workload.average([group.blocks(tokens, 1, self._states()) for tokens in lengths])
        return max(parts, key=lambda name: parts[name])


def vllm_pool(plan: Plan, bytes_per_gpu: int, length: int | None) -> VllmPool:
    """The pool that `bytes_per_gpu` bytes on each GPU give. `length` (max_model_len) sizes the tokens of hybrids."""
    notes: list[str] = []
    groups = groups_of(plan, notes)
    block_bytes = max(max(group.bytes(stage) for group in groups) for stage in plan.stages)
    notes.append("block 0 is the null block and holds no request: one block less is usable than reported")
    return VllmPool(plan, groups, bytes_per_gpu // block_bytes, block_bytes, bytes_per_gpu, length, tuple(notes))
