"""The words that text, markdown and the live table share: who, when, how full, how long."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from diagnoser.model import Answer, Diagnosis, PoolState, Quantity, Range, TierState
from diagnoser.units import count, duration, percent, seconds, size

TITLES = {"vllm": "vLLM", "sglang": "SGLang", "unknown": ""}
"""How people write an engine; others are shown by their family."""
GATES = {
    "l1": "KV space",
    "slots": "slots",
    "prefill": "prefill",
    "external": "outside",
    "l2_transfer": "copy from L2",
    "stalled": "stalled",
    "unexplained": "unexplained",
    "none": "open",
}
NO_BREAK = "\u00a0"
"""A blank at which no line is broken."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def clean(text: str) -> str:
    """Text without control characters: names and errors come from the network and must not steer a terminal."""
    return _CONTROL.sub("?", text.replace("\n", " ").replace("\t", " "))


def who(diagnosis: Diagnosis, ranks: bool) -> str:
    """Engine, version, model, target and, where there are several, the rank."""
    engine = diagnosis.engine
    title = TITLES.get(engine.family, engine.family)
    parts = [f"{title} {engine.version or ''}".strip(), engine.model or "", engine.target]
    parts += [f"rank {engine.rank}"] if ranks or engine.rank not in ("0", "") else []
    return " · ".join(clean(part) for part in parts if part)


def clock(at: float) -> str:
    """Time of day, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%SZ")


def day(at: float) -> str:
    """Date, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def span(diagnosis: Diagnosis) -> str:
    """The window: how long, how many pages, when it ended."""
    pages = "1 page" if diagnosis.scrapes == 1 else f"{diagnosis.scrapes} pages"
    return f"{duration(diagnosis.window_seconds)}, {pages}, {clock(diagnosis.at)}"


def gravity(diagnosis: Diagnosis) -> str:
    """Severity, confidence and trend of the verdict."""
    verdict = diagnosis.verdict
    parts: list[str] = [verdict.severity] if verdict.severity != "info" else []
    parts.append(f"{verdict.confidence} confidence")
    return " · ".join([*parts, verdict.trend] if verdict.trend != "steady" else parts)


# ---------------------------------------------------------------- numbers


def signal(diagnosis: Diagnosis, name: str) -> float | None:
    """A signal's value, None if it is missing."""
    found = diagnosis.signals.get(name)
    return None if found is None else found.value


def bounds(quantity: Quantity) -> tuple[float, float] | None:
    """A quantity as (low, high)."""
    if quantity is None:
        return None
    return (quantity.low, quantity.high) if isinstance(quantity, Range) else (float(quantity), float(quantity))


def part(quantity: Quantity, capacity: float | None) -> tuple[float, float] | None:
    """A quantity as shares of the capacity, each within 0..1."""
    found = bounds(quantity)
    if found is None or not capacity:
        return None
    return min(1.0, max(0.0, found[0] / capacity)), min(1.0, max(0.0, found[1] / capacity))


def percents(found: tuple[float, float]) -> str:
    """ "94 %", or "94..98 %" for a range."""
    low, high = (percent(value) for value in found)
    return high if low == high else f"{low.removesuffix(' %')}..{high}"


def used_part(diagnosis: Diagnosis) -> tuple[float, float] | None:
    """Share of the pool that requests hold at the end of the window."""
    found = part(diagnosis.l1.used, diagnosis.l1.capacity)
    if found is not None:
        return found
    ratio = signal(diagnosis, "l1_used_ratio_last")
    return None if ratio is None else (ratio, ratio)


def split_known(pool: PoolState) -> bool:
    """Can evictable be told from available? Not where both may be nothing or everything that is free."""
    evictable, available = bounds(pool.evictable), bounds(pool.available)
    if evictable is None or available is None:
        return False
    return not (evictable == available and evictable[0] == 0 and evictable[1] > 0)


def rest_words(pool: PoolState) -> str:
    """What is not used: evictable and available, together where the engine does not tell them apart."""
    evictable, available = part(pool.evictable, pool.capacity), part(pool.available, pool.capacity)
    if split_known(pool) and evictable is not None and available is not None:
        return f"evictable {percents(evictable)}, available {percents(available)}"
    used = part(pool.used, pool.capacity)
    return f"evictable + available {percents((1 - used[1], 1 - used[0]))}" if used else ""


def amount(value: float, unit: str) -> str:
    """A capacity in words: "8,192 tokens", "12.5 GiB"."""
    return size(value) if unit == "bytes" else f"{count(value)} {unit}"


def tier_part(tier: TierState) -> tuple[float, float] | None:
    """How full the host tier is, as (low, high) shares; None where that cannot be told."""
    if not tier.capacity or not tier.presence:
        return None
    if tier.resident is not None:
        return part(tier.resident, tier.capacity)
    return None if tier.resident_upper is None else part(Range(0.0, tier.resident_upper), tier.capacity)


def tier_words(diagnosis: Diagnosis) -> str:
    """The host tier: how full, or why that is not known."""
    tier = diagnosis.l2
    if tier is None:
        return "no page says whether there is a host tier"
    if tier.presence is False:
        return "none"
    if tier.presence is None:
        return f"not observable: {clean(tier.reason)}" if tier.reason else "not observable"
    full, name = tier_part(tier), clean(tier.backend)
    if tier.governs_admission:
        name += ", part of the pool"
    if full is None or tier.capacity is None:
        said = any(tier.reason in sentence for sentence in diagnosis.verdict.because)
        why = f": {clean(tier.reason)}" if tier.reason and not said else ""
        return f"{name}; how full it is cannot be seen{why}"
    most = f"used {percents(full)}" if tier.resident is not None else f"used at most {percent(full[1])}"
    return f"{most} of {amount(tier.capacity, tier.unit)}, {name}"


def ttft_p99(diagnosis: Diagnosis, short: bool = False) -> str:
    """The bucket of the P99: "(20 s, 40 s]", short "(20, 40] s"; "" if unknown."""
    low, high = signal(diagnosis, "ttft_p99_low_seconds"), signal(diagnosis, "ttft_p99_high_seconds")
    if low is None or high is None:
        return ""
    if high == float("inf"):
        return f"> {seconds(low)}"
    return f"({low:g}, {high:g}] s" if short else f"({seconds(low)}, {seconds(high)}]"


PARTS = {
    "queue": "queue",
    "l2_load": "L2 load",
    "prefill": "prefill",
    "prefill_and_rest": "prefill + rest",
    "redo": "redone",
    "rest": "rest",
}
"""Causes of TTFT as people read them."""


def ttft_parts(diagnosis: Diagnosis) -> list[tuple[str, float]]:
    """Known parts of the mean TTFT by name, those that are nothing left out; none where the queue is not known."""
    parts = diagnosis.ttft.parts if diagnosis.ttft is not None else ()
    if not parts or parts[0].share is None:
        return []
    return [(part.name, part.share) for part in parts if part.share or (part.name == "queue" and part.share == 0)]


def ttft_words(diagnosis: Diagnosis, brief: bool = False) -> str:
    """Parts of TTFT, its P99, and, unless brief, how old the parts are. "" if nothing is known."""
    said = [f"{PARTS[name]} {percent(value)}".replace(" ", NO_BREAK) for name, value in ttft_parts(diagnosis)]
    p99, ttft = ttft_p99(diagnosis), diagnosis.ttft
    parts = [", ".join(said)] if said else []
    parts += [(f"P99 in {p99}" if p99[0] == "(" else f"P99 {p99}").replace(" ", NO_BREAK)] if p99 else []
    slow = ttft is not None and (ttft.mean_seconds or 0.0) >= 1
    if said and not brief and ttft is not None and slow and "earlier" in ttft.basis:
        parts.append(ttft.basis)
    return "; ".join(parts)


def ttft_now(diagnosis: Diagnosis) -> str:
    """What the histograms cannot show yet: silence, the wait of a new arrival, which part is missing. "" if nothing."""
    sentences = diagnosis.ttft.sentences if diagnosis.ttft is not None else ()
    return " ".join(s for s in sentences if s.startswith(("Estimate", "No first token", "The parts are not known")))


def asks_for_l2(diagnosis: Diagnosis) -> bool:
    """Would a reader of this verdict think of more host cache?"""
    return diagnosis.verdict.bottleneck in ("l1", "prefill", "l2_transfer")


def more_l2(diagnosis: Diagnosis) -> str:
    """Would more L2 help? One line; "" where nobody would ask."""
    more = diagnosis.more_l2
    if more is None or (more.answer is Answer.UNKNOWN and not diagnosis.scrapes):
        return ""
    return f"{more.answer.value}: {clean(more.reason)}"


def closed(diagnosis: Diagnosis) -> float | None:
    """Share of the window that some gate was closed; None if it could not be attributed."""
    shares = diagnosis.verdict.shares
    return sum(share for gate, share in shares.items() if gate != "none") if shares else None


def change(diagnosis: Diagnosis) -> str:
    """One line that stands alone in a log: when, who, verdict and the numbers behind it."""
    engine, waiting, used = diagnosis.engine, signal(diagnosis, "waiting_last_requests"), used_part(diagnosis)
    gate, p99 = closed(diagnosis), ttft_p99(diagnosis)
    parts = [
        f"{day(diagnosis.at)}T{clock(diagnosis.at)} {engine.target} rank {engine.rank}: {diagnosis.verdict.headline}"
    ]
    parts += [] if gate is None else [f"closed {percent(gate)}"]
    parts += [] if waiting is None else [f"waiting {count(waiting)}"]
    parts += [] if used is None else [f"used {percents(used)}"]
    return clean(" · ".join([*parts, f"TTFT P99 {p99}"] if p99 else parts))
