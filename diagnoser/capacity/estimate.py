"""The whole sum: model + deployment + memory + lengths -> bytes a token, pool, concurrency, and what was assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from diagnoser.capacity.deployment import Deployment
from diagnoser.capacity.layers import WINDOWED, Model
from diagnoser.capacity.memory import Budget
from diagnoser.capacity.plan import Plan, plan
from diagnoser.capacity.pool import Limit, Pool, Size, binding
from diagnoser.capacity.reservation import Reservation, reservation
from diagnoser.capacity.sglang import sglang_pool
from diagnoser.capacity.vllm import vllm_pool
from diagnoser.capacity.workload import Request, Workload

MOMENTS = ("peak", "mean", "admission")
EFFICIENCY = 0.94
"""Share of a saturated pool that running requests really hold (0.92-0.95 in a queue model with one pool)."""


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Requests at once: `limits` not rounded, `requests` what fits whole, `low` and `high` with the error."""

    requests: int
    low: int
    high: int
    limits: tuple[Limit, ...]

    @property
    def bound(self) -> Limit:
        """The limit that holds."""
        return binding(self.limits)


@dataclass(frozen=True, slots=True)
class Capacity:
    """What `diagnose capacity` prints. Pool and concurrency are of one replica (one data-parallel rank)."""

    plan: Plan
    budget: Budget | None = None
    size: Size | None = None
    tokens_low: int = 0
    tokens_high: int = 0
    workload: Workload | None = None
    at: Mapping[str, Concurrency] = field(default_factory=dict)
    """By moment: "peak" (prompt + output: nobody is thrown out), "mean" (prompt + output / 2), "admission" (prompt)."""
    reserved: Reservation | None = None
    notes: tuple[str, ...] = ()


def make_pool(made: Plan, bytes_per_gpu: int, length: int | None = None) -> Pool:
    """The pool of this plan's engine. `length` = the longest request (max_model_len), needed for hybrids on vLLM."""
    length = length or made.deployment.max_length or made.model.max_length
    return (vllm_pool if made.deployment.engine == "vllm" else sglang_pool)(made, bytes_per_gpu, length)


def estimate(
    model: Model, deployment: Deployment, memory: Budget | None = None, load: Workload | None = None, *,
    max_new: int | None = None, conservativeness: float = 1.0,
) -> Capacity:
    """All that follows from what is known: without `memory` only bytes, without `load` requests of full length."""
    made = plan(model, deployment)
    notes = [*made.notes, *_windows(made)]
    if memory is None:
        return Capacity(made, notes=tuple(notes))
    length = deployment.max_length or model.max_length
    if load is None and length is not None:
        load = Workload((Request(length),))
        notes.append(f"no lengths given: requests of the full {length:,} tokens")
    longest = length or (max(load.lengths("peak")) if load else None)
    pools = [make_pool(made, max(0, memory.bytes_per_gpu + sign * memory.error_bytes), longest) for sign in (0, -1, 1)]
    size, low, high = (pool.size for pool in pools)
    notes += [*memory.notes, *size.notes, *_load_notes(deployment, load, length)]
    at = {moment: _concurrency(pools, load, moment) for moment in MOMENTS} if load else {}
    if load and deployment.engine == "vllm":
        notes += _exact_fit(pools[0], at["peak"], load)
    reserved = _reserved(deployment, size, load, max_new, conservativeness)
    return Capacity(made, memory, size, low.tokens, high.tokens, load, at, reserved, tuple(notes))


def _concurrency(pools: list[Pool], load: Workload, moment: str) -> Concurrency:
    exact, low, high = (pool.limits(load, moment) for pool in pools)
    return Concurrency(whole(binding(exact)), whole(binding(low)), whole(binding(high)), exact)


def whole(limit: Limit) -> int:
    """Requests that fit whole (a hair of floating point forgiven)."""
    return int(limit.requests + 1e-9)


def _exact_fit(pool: Pool, peak: Concurrency, load: Workload) -> list[str]:
    """vLLM's own formula counts the null block; say so where that block decides."""
    blocks = pool.size.blocks or 0
    if peak.bound.name == "slots" or blocks < 2:
        return []
    fewer = int(peak.bound.requests * (blocks - 1) / blocks + 1e-9)
    return [f"an exact fit: without the null block {fewer} of the {peak.requests} fit"] if fewer < peak.requests else []


def _windows(made: Plan) -> list[str]:
    if any(cache.kind in WINDOWED for cache in made.caches) and made.growing and made.growing[0].kind in WINDOWED:
        return ["every layer has a window: bytes a token hold up to the window only"]
    return []


def _load_notes(deployment: Deployment, load: Workload | None, length: int | None) -> list[str]:
    notes = []
    if load and length and max(load.lengths("peak")) > length:
        notes.append(f"requests longer than the maximal length of {length:,} tokens are refused by the engine")
    if load and deployment.engine == "vllm" and deployment.slots is None:
        notes.append("slot limit not given, not applied: vLLM's max_num_seqs is 256, 1,024 on GPUs of 70 GiB and more")
    if load and len(load.requests) > 1:
        notes.append("weights are shares of the running requests, not of arrivals")
    return notes


def _reserved(
    deployment: Deployment, size: Size, load: Workload | None, max_new: int | None, conservativeness: float,
) -> Reservation | None:
    """SGLang's admission for the average request. Does not see windows and states."""
    if deployment.engine != "sglang" or load is None:
        return None
    prompt = round(load.mean_length("admission"))
    output = round(load.mean_length("peak")) - round(load.average([request.prompt for request in load.requests]))
    return reservation(size.tokens, prompt, output, max_new, conservativeness=conservativeness, page=deployment.page)
