"""What a host-tier (L2) reader is, and the state of a tier over a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from diagnoser.model import EngineId, Fact, L2State, Sample, TierState

COUNTERS: Mapping[str, str] = {
    "stored_total": "moved from L1 into the tier, in the tier's unit unless its reader says otherwise",
    "loaded_total": "moved from the tier back into L1",
    "evicted_total": "thrown out of the tier to make room",
    "dropped_total": "stores refused because the tier had no room",
    "lagged_total": "left L1 before they were copied: the write path was too slow",
    "errors_total": "failed transfers",
    "hit_tokens_total": "tokens found in the tier",
    "query_tokens_total": "tokens looked up in the tier",
    "load_bytes_total": "bytes loaded",
    "load_seconds_total": "time spent on those loads",
}


@dataclass(frozen=True, slots=True)
class Tier:
    """One backend. A file diagnoser/tiers/<name>.py with TIER = Tier(...) is all a new one needs."""

    name: str
    metrics: frozenset[str]
    """Metric base names (colon spelling, without _bucket/_sum/_count) the reader uses."""
    read: Callable[[Sequence[Sample], EngineId, Mapping[str, Fact]], TierState | None]
    """The tier of one engine rank on one page; None = no sign of this backend. `facts` are all that is known."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers of the state machine. They live in the rules, not here."""

    resident_low_ratio: float
    """Below this share of its capacity a tier has idle space."""
    resident_full_ratio: float
    """From this share on a tier without an eviction counter counts as full."""


def increase(first: TierState, last: TierState, counter: str) -> float | None:
    """How far a counter moved between two pages: None where it does not exist, all of it after a reset or birth."""
    after = last.counters.get(counter)
    if after is None or first is last:
        return None
    before = first.counters.get(counter)
    grown = after.value - before.value if before is not None else after.value
    return grown if grown >= 0 else after.value


def state(first: TierState, last: TierState, window_seconds: float, thresholds: Thresholds) -> tuple[L2State, str]:
    """The state of the tier over a window, and why. One page alone (first is last) proves no rate.

    `slow` is not decided here: it needs the waiting requests, which the tier does not know.
    """
    over = f"in {window_seconds:g} s"
    if last.presence is None:
        return L2State.UNKNOWN, last.reason or "the page does not tell whether there is a host tier"
    if not last.presence:
        return L2State.ABSENT, last.reason or "no host tier"
    if last.governs_admission:
        return L2State.GOVERNS_ADMISSION, last.reason or "the host pool is the KV pool and governs admission"
    moved = {name: increase(first, last, name) for name in COUNTERS}
    for name, found in (("errors_total", L2State.BROKEN), ("dropped_total", L2State.TOO_SMALL)):
        if moved[name]:
            return found, f"{last.counters[name].series} rose by {moved[name]:g} {over}"
    return _by_fill(last, moved, over, thresholds) or _by_traffic(last, moved, over)


def _by_fill(
    last: TierState, moved: Mapping[str, float | None], over: str, thresholds: Thresholds
) -> tuple[L2State, str] | None:
    if moved["evicted_total"]:
        return L2State.FULL_NORMAL, f"it evicts ({moved['evicted_total']:g} {over}) and refuses nothing: full is normal"
    if not last.capacity:
        return None
    fill = None if last.resident is None else last.resident / last.capacity
    most = None if last.resident_upper is None else last.resident_upper / last.capacity
    evicted = last.counters.get("evicted_total")
    if not (evicted and evicted.value):
        for share, words in ((fill, "holds"), (most, "can hold at most")):
            if share is not None and share < thresholds.resident_low_ratio:
                return L2State.IDLE_SPACE, f"it {words} {share:.0%} of its capacity and refuses nothing"
    if fill is not None and fill >= thresholds.resident_full_ratio:
        return L2State.FULL_NORMAL, f"it holds {fill:.0%} of its capacity and refuses nothing: full is normal"
    return None


def _by_traffic(last: TierState, moved: Mapping[str, float | None], over: str) -> tuple[L2State, str]:
    if moved["stored_total"] == 0 and moved["loaded_total"] == 0:
        return L2State.IDLE_TRAFFIC, f"nothing was stored or loaded {over}"
    evicted = last.counters.get("evicted_total")
    if evicted is not None and evicted.value:
        return L2State.FULL_NORMAL, "it has evicted before and refuses nothing: full is normal"
    never = "; it has never evicted, so more of it would hold nothing more" if evicted is not None else ""
    return L2State.UNKNOWN, (last.reason or "how full it is cannot be seen") + never
