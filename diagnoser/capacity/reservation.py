"""SGLang's admission: how many requests run before the next is refused on output that is only reserved.

sglang/srt/mem_cache/prefill_budget.py, sglang/srt/managers/schedule_policy.py (0.5.23): a running request reserves
ratio x min(max_new - out, 4096); a candidate needs its prompt + min(max_new, 4096) in full + a page, and is refused
when that reaches available + evictable - what is reserved. Requests admitted in one pass are all charged in full.
"""

from __future__ import annotations

from dataclasses import dataclass

from diagnoser.errors import CapacityError

CLIP = 4096
"""SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION."""
INITIAL_RATIO, FLOOR_FACTOR = 0.7, 0.14
"""SGLANG_INIT_NEW_TOKEN_RATIO; the ratio decays to 0.14 of it in 600 decode steps."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Requests that run when the next is refused, and the usage of the pool then (0..1)."""

    requests: int
    usage_ratio: float
    reserved_tokens: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """The three moments of one load: a burst in one pass, all running freshly admitted, the steady state."""

    burst: Admission
    fresh: Admission
    steady: Admission


def reservation(
    pool_tokens: int, prompt: int, output: int, max_new: int | None = None, *, conservativeness: float = 1.0,
    page: int = 1, clip: int = CLIP,
) -> Reservation:
    """Admission of equal requests: `prompt` and `output` tokens really used, `max_new` what the client allows.

    `max_new` None = not set: the engine then reserves the clip. Cached prefixes are not considered.
    """
    if min(pool_tokens, prompt, output) < 0 or page < 1 or not conservativeness > 0:
        raise CapacityError("the reservation needs a pool, lengths of at least 0 and a conservativeness above 0")
    limit = 2**30 if max_new is None else max_new
    full = min(limit, clip)
    first = min(1.0, INITIAL_RATIO * conservativeness)
    grown, left, need = prompt + output // 2, min(limit - output // 2, clip), prompt + full + page
    return Reservation(
        burst=admitted(pool_tokens, prompt, full + page, need),
        fresh=admitted(pool_tokens, prompt, first * full, need),
        steady=admitted(pool_tokens, grown, first * FLOOR_FACTOR * left, need),
    )


def admitted(pool_tokens: int, resident: float, reserved: float, need: float) -> Admission:
    """The largest n whose last member was still admitted: need < pool - (n - 1) x (resident + reserved)."""
    each = resident + max(0.0, reserved)
    if need >= pool_tokens:
        return Admission(0, 0.0, 0)
    more = int((pool_tokens - need) / each) if each else 0
    if each and more * each >= pool_tokens - need:
        more -= 1
    count = more + 1
    return Admission(count, min(1.0, count * resident / pool_tokens), round(count * max(0.0, reserved)))


def refusal_usage(prompt: int, generated: int, max_new: int, ratio: float, clip: int = CLIP) -> float:
    """Usage at which a large pool refuses: (P + g) / (P + g + ratio x min(max_new - g, clip))."""
    held = prompt + generated
    return held / (held + ratio * min(max(0, max_new - generated), clip)) if held else 0.0
