"""SGLang: one pool of tokens, one of window tokens, one of states; the smallest bounds the requests.

sglang/srt/model_executor/pool_configurator.py (DefaultPoolConfigurator, HybridSWAPoolConfigurator),
sglang/srt/mem_cache/kv_cache_configurator.py (_handle_max_mamba_cache, resolve_max_num_reqs), 0.5.23.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from diagnoser.capacity.layers import GROWING, WINDOWED
from diagnoser.capacity.plan import Cache, Plan
from diagnoser.capacity.pool import Limit, Size, slots_limit
from diagnoser.capacity.workload import Workload

EVICTION_INTERVAL = 128
"""SGLANG_SWA_EVICTION_INTERVAL: tokens a window may overhang before it is trimmed."""
STATES_CACHED, STATES_PLAIN = 5, 1
"""States reserved a running request: radix cache on with the extra buffer and overlap (3 without it), and off."""
SLOTS_LOW, SLOTS_HIGH, SLOTS_FACTOR = 2048, 4096, 512


@dataclass(frozen=True, slots=True)
class SglangPool:
    """The pools of one replica, in tokens and states. None = the model has no such pool."""

    plan: Plan
    bytes_per_gpu: int
    tokens: int | None
    windows: int | None
    states: int | None
    length: int | None
    notes: tuple[str, ...]

    @property
    def size(self) -> Size:
        """max_total_num_tokens and its companions."""
        tokens = self.tokens if self.tokens is not None else self.windows or 0
        return Size(
            self.bytes_per_gpu, tokens, tokens, self.plan.deployment.page, window_tokens=self.windows,
            state_slots=self.states, notes=self.notes,
        )

    def limits(self, workload: Workload, moment: str) -> tuple[Limit, ...]:
        """Tokens, window tokens, states and slots."""
        lengths = [self._paged(tokens + self.plan.deployment.lookahead) for tokens in workload.lengths(moment)]
        found: list[Limit] = []
        if self.tokens is not None:
            mean = workload.average(lengths)
            found.append(Limit("tokens", self.tokens / mean, f"{mean:,.0f} tokens a request of {self.tokens:,}"))
        if self.windows is not None:
            found.append(self._window(workload, lengths))
        if self.states is not None:
            each = self._states_each()
            found.append(Limit("state", self.states // each, f"{each} state slots a request of {self.states:,}"))
        return (*found, *self._slots())

    def _paged(self, tokens: int) -> int:
        page = self.plan.deployment.page * self.plan.deployment.dcp
        return -(-tokens // page) * page

    def _window(self, workload: Workload, lengths: list[int]) -> Limit:
        """A window holds itself, the eviction interval and two pages at most; batches in flight come once."""
        page, pool = self.plan.deployment.page, self.windows or 0
        cap = max(c.window for c in self.plan.caches if c.kind in WINDOWED) + EVICTION_INTERVAL + 2 * page
        held = workload.average([min(tokens, cap) for tokens in lengths])
        extra = max(min(tokens - min(tokens, cap), self.plan.deployment.in_flight) for tokens in lengths)
        return Limit("window", max(0, pool - extra) / held, f"{held:,.0f} window tokens a request of {pool:,}")

    def _states_each(self) -> int:
        return STATES_CACHED if self.plan.deployment.prefix_caching else STATES_PLAIN

    def _slots(self) -> tuple[Limit, ...]:
        tokens = self.size.tokens
        if self.plan.deployment.slots is not None:
            return slots_limit(min(self.plan.deployment.slots, tokens // 2))
        if self.length is None:
            return ()
        default = max(SLOTS_LOW, min(SLOTS_HIGH, tokens * SLOTS_FACTOR // self.length))
        return slots_limit(min(default, tokens // 2), "SGLang's default of max_running_requests")


def sglang_pool(plan: Plan, bytes_per_gpu: int, length: int | None) -> SglangPool:
    """The pools that `bytes_per_gpu` bytes on each GPU give."""
    notes: list[str] = []
    left, states = _states(plan, bytes_per_gpu, notes)
    page, dcp, ratio = plan.deployment.page, plan.deployment.dcp, Fraction(str(plan.deployment.swa_ratio))
    growing = [cache for cache in plan.caches if cache.kind in GROWING]
    windows = [cache for cache in plan.caches if cache.kind in WINDOWED]
    full = window = None
    if growing:
        cell = max(_rows(growing, stage) + (ratio * _rows(windows, stage)) for stage in plan.stages)
        full = int(left // cell) // page * page * dcp
        window = int(full // dcp * ratio) // page * page if windows else None
    elif windows:
        window = left // max(_rows(windows, stage) for stage in plan.stages) // page * page
    if growing and windows:
        notes.append(f"window pool = {float(ratio):g} of the full pool (--swa-full-tokens-ratio)")
    return SglangPool(plan, bytes_per_gpu, full, window, states, length, tuple(notes))


def _rows(caches: list[Cache], stage: int) -> int:
    return sum(cache.row for cache in caches if cache.stage == stage)


def _states(plan: Plan, budget: int, notes: list[str]) -> tuple[int, int | None]:
    """(bytes left for tokens, state slots): states get ratio / (1 + ratio) of the budget, one slot is padding."""
    each = plan.state_bytes_per_gpu
    if not each:
        return budget, None
    ratio = Fraction(str(plan.deployment.state_ratio))
    slots = max(0, (int(budget * ratio / (1 + ratio)) - each) // each)
    notes.append(
        f"states get {float(ratio):g} parts to 1 of the pool (--mamba-full-memory-ratio); {STATES_CACHED} slots a"
        " request with radix cache and extra buffer, 3 without the buffer, 1 without radix cache"
    )
    return max(0, budget - (slots + 1) * each), slots


