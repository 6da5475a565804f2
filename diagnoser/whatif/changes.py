"""The changes, each with the resource it enlarges, its assumption and its error."""

from __future__ import annotations

import math
from collections.abc import Iterator

from diagnoser.model import Diagnosis, L2State, WhatIf
from diagnoser.whatif.load import Limits, Load, load_of
from diagnoser.whatif.outcome import Change, nothing, outcome, unsaid

POOL, SLOTS, STEP, ENGINE = "pool", "slots", "step", "engine"
"""What a change enlarges: tokens of the pool, request slots, the speed of prefill, whole engines."""
BINDS = {"l1": POOL, "slots": SLOTS, "prefill": STEP, "none": POOL}
"""What is short for each gate. For other gates nothing of the pool can be predicted."""
IN_WORDS = {
    POOL: "KV space is what requests wait for",
    SLOTS: "request slots are what requests wait for",
    STEP: "prefill is what requests wait for",
}
NAMES = {POOL: "KV space", SLOTS: "slots", STEP: "prefill"}
SHORTER, MORE = 0.7, 1.1


def what_if(diagnosis: Diagnosis, limits: Limits, busiest: float | None = None) -> tuple[WhatIf, ...]:
    """Every change that this engine can make, or nothing where no gate of ours binds.

    `busiest` is what arrived a second at the busiest, if the diagnosis is about a longer time; a pool is sized for it.
    """
    binds = BINDS.get(diagnosis.verdict.bottleneck)
    if binds is None:
        return ()
    found = load_of(diagnosis.signals)
    changes = [*_changes(diagnosis, found if isinstance(found, Load) else None), *_slots(binds)]
    if isinstance(found, str):
        return (*(unsaid(change, found) for change in changes), _twice_l2(diagnosis))
    told = (_told(change, binds, found, limits) for change in changes)
    return (_required(binds, found.busier(busiest), limits), *told, _twice_l2(diagnosis))


def _told(change: Change, binds: str, load: Load, limits: Limits) -> WhatIf:
    if change.enlarges not in (binds, ENGINE):
        return nothing(change, f"{IN_WORDS[binds]}, not {NAMES[change.enlarges]}", load)
    return outcome(change, load, limits, capped=binds == POOL)


def _changes(diagnosis: Diagnosis, load: Load | None) -> Iterator[Change]:
    dtype = diagnosis.facts.get("cache_dtype")
    if dtype is None or not str(dtype.value).lower().startswith("fp8"):
        yield Change("fp8_kv", "KV in 8 bits", POOL, 2.0, "twice the tokens; 16-bit MHA or GQA (sparse MLA: 1.76)")
    yield Change("more_memory", "a pool 10 % larger", POOL, MORE, "the memory is there: a higher memory fraction")
    yield Change("replica", "one more replica", ENGINE, 2.0, "half of the arrivals each, of the same mix")
    yield Change(
        "tp_x2", "TP x 2", POOL, 2.0,
        "the pool doubles at least, if KV heads split further (MLA: only weights shrink); steps not counted as faster",
    )  # fmt: skip
    if load is not None and load.output > 0:
        yield _shorter(load, BINDS[diagnosis.verdict.bottleneck])
    if load is not None and load.reserved > 0:
        yield _conservativeness(load)


def _shorter(load: Load, binds: str) -> Change:
    """Outputs 0.7 times as long. A slot is held for fewer seconds; of the pool also fewer tokens are held."""
    kept = max(0.0, load.resident - load.output / 2)
    now, then = kept + load.output / 2, SHORTER * (kept + SHORTER * load.output / 2)
    enlarges, factor = (SLOTS, 1.0 / SHORTER) if binds == SLOTS else (POOL, now / then)
    return Change(
        "shorter_outputs", "outputs 30 % shorter", enlarges, factor, "max_tokens cuts all of them; prompts stay"
    )


def _conservativeness(load: Load) -> Change:
    """Half of the reserve: each running request then takes its tokens and half of what was set aside for it."""
    factor = (load.held + load.reserved) / (load.held + load.reserved / 2)
    return Change(
        "lower_conservativeness", "half the schedule conservativeness", POOL, factor,
        "the reserve for running requests halves; the head is still charged in full: max_tokens counts there",
    )  # fmt: skip


def _slots(binds: str) -> Iterator[Change]:
    yield Change("more_slots", "twice the slot limit", SLOTS, 2.0, "KV space allows it", capped=binds == SLOTS)


def _required(binds: str, load: Load, limits: Limits) -> WhatIf:
    """The pool that carries the load at the target."""
    if binds != POOL:
        return nothing(
            Change("required_pool", "a larger pool", POOL, 1.0, ""), f"{IN_WORDS[binds]}, not KV space", load
        )
    low, high = load.required(limits)
    if high is None:
        why = f"{load.lost:.0%} of the time goes to prefill, recomputing and stalls: it may not do; {low:,.0f} at least"
        return unsaid(Change("required_pool", "a larger pool alone", POOL, 1.0, ""), why)
    tokens = math.sqrt(low * high)
    return WhatIf(
        id="required_pool",
        change=f"a pool of {tokens:,.0f} tokens",
        helps=tokens > load.capacity,
        concurrency=limits.pool_used_most * tokens / load.resident,
        rho=limits.rho_target,
        queue="no lasting queue",
        assumption=f"{limits.rho_target:.0%} of it used; low: steps take no longer however many run; high: all that is"
        " no fast decoding grows with the requests served",
        error="measured within 25 %" if load.standing else "the queue comes and goes: measured 10 to 25 % too low",
        pool_tokens=tokens,
        pool_low_tokens=low,
        pool_high_tokens=high,
    )


def _twice_l2(diagnosis: Diagnosis) -> WhatIf:
    if diagnosis.verdict.l2 is L2State.GOVERNS_ADMISSION:
        return WhatIf("twice_l2", "twice the L2", None, "here the host pool is part of what admission counts")
    reason = "admission counts tokens in L1; L2 holds copies, and every hit takes as much L1 as a miss"
    why = diagnosis.more_l2.reason if diagnosis.more_l2 is not None else ""
    shorter = diagnosis.more_l2 is not None and diagnosis.more_l2.answer == "yes"
    said = f"no change in admission: {reason}"
    if shorter and why:
        said = f"{said}; it may shorten prefill: {why}"
    return WhatIf("twice_l2", "twice the L2", False, said, queue="no change")
