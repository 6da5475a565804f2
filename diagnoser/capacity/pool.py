"""The KV pool of one replica, and how many requests fit: what every engine's module returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from diagnoser.capacity.workload import Workload


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit on the number of requests that run at once. `requests` is not rounded."""

    name: str
    """tokens, window, state or slots."""
    requests: float
    reason: str


@dataclass(frozen=True, slots=True)
class Size:
    """What the pool of one replica holds. `tokens` as the engine itself reports its pool.

    `usable_tokens` leaves out vLLM's null block. `blocks` and `block_bytes` (a GPU) where the engine has blocks.
    `tokens_exact` False: windows or states make it "equivalent tokens", true at one length only.
    """

    bytes_per_gpu: int
    tokens: int
    usable_tokens: int
    block_size: int
    blocks: int | None = None
    block_bytes: int | None = None
    window_tokens: int | None = None
    state_slots: int | None = None
    tokens_exact: bool = True
    notes: tuple[str, ...] = ()


class Pool(Protocol):
    """A pool of known size."""

    @property
    def size(self) -> Size:
        """What it holds."""

    def limits(self, workload: Workload, moment: str) -> tuple[Limit, ...]:
        """Every limit for requests of these lengths at "peak", "mean" or "admission", in no order."""


def binding(limits: tuple[Limit, ...]) -> Limit:
    """The limit that holds: the smallest."""
    return min(limits, key=lambda limit: limit.requests)


def slots_limit(slots: int | None, reason: str = "slots given") -> tuple[Limit, ...]:
    """The limit of max_num_seqs or max_running_requests, none if not known."""
    return () if slots is None else (Limit("slots", float(slots), reason),)
