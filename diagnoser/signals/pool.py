"""The KV pool: how much is held, what the head of the queue needs, and whether it would fit."""

from __future__ import annotations

import math

from diagnoser.model import Histogram, PoolState, Quantity, Range, Snapshot
from diagnoser.signals.base import IntervalSignal, Params, Signal, scalar
from diagnoser.signals.requests import queued
from diagnoser.signals.view import Found, Missing, Result, View, grown_between, mean

CLIP_TOKENS = 4096.0
"""SGLang reserves at most this much output a request (SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION, sglang/srt/environ.py)."""
RATIO_START, RATIO_FLOOR = 0.7, 0.098
RATIO_DECAY = (RATIO_START - RATIO_FLOOR) / 600
"""new_token_ratio starts here and loses this much a decode step, down to the floor, all times conservativeness
(sglang/srt/environ.py). The start is assumed where the gauge is not exported: it reserves most."""


# ---------------------------------------------------------------- one page


def used(snapshot: Snapshot) -> float | None:
    """Tokens held by requests."""
    value = snapshot.pool.used
    return value if isinstance(value, float | int) else None


def free(snapshot: Snapshot) -> float | None:
    """Tokens a new request could get: evictable plus available."""
    held, capacity = used(snapshot), snapshot.pool.capacity
    return None if held is None or capacity is None else max(0.0, capacity - held)


def used_ratio(snapshot: Snapshot) -> float | None:
    """Share of the pool held by requests."""
    held, capacity = used(snapshot), snapshot.pool.capacity
    if held is not None and capacity:
        return held / capacity
    return snapshot.value("l1_used_ratio")


# ---------------------------------------------------------------- what the head needs


def prompt_mean(view: View) -> tuple[float, str] | None:
    """Mean prompt of those admitted in the window, else of all since the start, and where it came from."""
    prompts, first = view.increase("prompt_tokens_total"), view.histogram("ttft_seconds")
    if isinstance(prompts, Found) and isinstance(first, Histogram) and first.count > 0 and prompts.value > 0:
        return prompts.value / first.count, f"{prompts.series[0]} / {first.series}_count"
    life = view.lifetime("prompt_tokens")
    if isinstance(life, Histogram) and life.count > 0:
        return life.sum / life.count, life.series
    total, finished = view.last("prompt_tokens_total"), view.last("finished_requests_total")
    if total and finished and finished.value > 0:
        return total.value / finished.value, f"{total.series} / {finished.series}"
    return None


def head_need(view: View) -> tuple[float, str] | None:
    """Tokens a typical head of the queue needs at once, in whole blocks."""
    prompt = prompt_mean(view)
    if prompt is None:
        return None
    block = view.number("block_size") or view.number("page_size") or 1.0
    return math.ceil(prompt[0] / block) * block, prompt[1]


def output_reserve(view: View) -> float | None:
    """Output an engine that reserves would set aside for one request: at least the longest output it has produced.

    max_new_tokens is on no page; the largest non-empty bucket of the output lengths bounds it from below.
    None for an engine that reserves nothing.
    """
    if not view.number("reserves_output"):
        return None
    life = view.lifetime("generation_tokens")
    if isinstance(life, Missing):
        return CLIP_TOKENS
    low = 0.0
    edges = [(edge, count) for edge, count in zip(life.edges, life.counts, strict=True)]
    longest = next((edge for edge, count in edges if count >= life.count), low)
    return min(longest, CLIP_TOKENS)


def ratio_now(view: View, snapshot: Snapshot) -> float:
    """new_token_ratio at this page: the gauge is written at a prefill and frozen while admission is refused, so decay it."""
    gauge = snapshot.value("new_token_ratio")
    scale = view.number("schedule_conservativeness") or 1.0
    if gauge is None:
        return RATIO_START * scale
    steps = 0.0
    before = [s for s in view.snapshots if s.at <= snapshot.at]
    for a, b in zip(reversed(before[:-1]), reversed(before), strict=False):
        if grown_between(a, b, "prefill_passes_total") != 0 or a.value("new_token_ratio") != b.value("new_token_ratio"):
            break
        steps += grown_between(a, b, "decode_passes_total") or 0.0
    return max(gauge - RATIO_DECAY * scale * steps, min(gauge, RATIO_FLOOR * scale))


def reserved(view: View, snapshot: Snapshot, output: float) -> float:
    """Tokens set aside for the future output of the running requests, if each may still produce `output`."""
    return ratio_now(view, snapshot) * (snapshot.value("running_requests") or 0.0) * output


def fits(view: View, snapshot: Snapshot, need: float) -> bool | None:
    """Would a typical head have been admitted by KV space on this page?

    An engine that reserves output charges every admission of a pass in full and stops at the first refusal, so the pool
    has to hold the head and one more (sglang/srt/managers/schedule_policy.py); others need the prompt alone.
    """
    room, output = free(snapshot), output_reserve(view)
    if room is None:
        return None
    if output is None:
        return room >= need + (view.number("watermark") or 0.0) * (snapshot.pool.capacity or 0.0)
    return room > reserved(view, snapshot, output) + 2 * (need + output)


def _fits_share(view: View, only_at_top: bool) -> Result:
    need, pages = head_need(view), queued(view)
    if need is None:
        return Missing("no prompt length on the page")
    if not pages:
        return Missing("nobody waited in this window")
    top = max(s.value("running_requests") or 0.0 for s in pages)
    answers = [
        a for s in pages
        if (not only_at_top or s.value("running_requests") == top) and (a := fits(view, s, need[0])) is not None
    ]
    if not answers:
        return view.why_missing("l1_used_tokens")
    return Found(mean([float(a) for a in answers]), (*_pool_series(view), need[1]))


def _surely_open(view: View, i: int) -> float | None:
    """1 if even the longest possible prompt had room at both ends: then KV space cannot be the closed gate."""
    longest = view.number("max_model_len") or view.number("context_len")
    ends = view.pair(i)
    rooms = [r for s in ends if (r := free(s)) is not None]
    if longest is None or len(rooms) < 2:
        return None
    output = CLIP_TOKENS if view.number("reserves_output") else 0.0
    margin = (view.number("watermark") or 0.0) * (ends[1].pool.capacity or 0.0)
    need = max(reserved(view, s, output) for s in ends) + (2 if output else 1) * (longest + output) + margin
    return float(min(rooms) >= need)


# ---------------------------------------------------------------- over the window


def _pool_series(view: View) -> tuple[str, ...]:
    names = ("l1_used_ratio", "l1_used_tokens", "l1_available_tokens", "l1_evictable_tokens")
    return tuple(dict.fromkeys(r.series for n in names if (r := view.last(n)) is not None))[:2]


def _ratio(view: View, pick: str) -> Result:
    values = [r for s in view.snapshots if (r := used_ratio(s)) is not None]
    if not values:
        return view.why_missing("l1_used_ratio")
    return Found({"mean": mean(values), "max": max(values), "last": values[-1]}[pick], _pool_series(view))


def _free(view: View, pick: str) -> Result:
    values = [f for s in view.snapshots if (f := free(s)) is not None]
    if not values:
        return view.why_missing("l1_capacity_tokens" if view.last("l1_used_ratio") else "l1_used_ratio")
    return Found({"min": min(values), "max": max(values), "last": values[-1]}[pick], _pool_series(view))


def _capacity(view: View, _: Params) -> Result:
    capacity = view.snapshots[-1].pool.capacity if view.snapshots else None
    return view.why_missing("l1_capacity_tokens") if capacity is None else Found(capacity, _pool_series(view))


def _head_need(view: View, _: Params) -> Result:
    need = head_need(view)
    return Missing("no prompt length on the page") if need is None else Found(need[0], (need[1],))


def _reserved(view: View, output: float | None) -> Result:
    ratio = view.last("new_token_ratio")
    if ratio is None or output is None:
        return view.why_missing("new_token_ratio")
    return Found(reserved(view, view.snapshots[-1], output), (ratio.series,))


def _slope(view: View, _: Params) -> Result:
    points = [(s.at, u) for s in view.snapshots if (u := used(s)) is not None]
    if len(points) < 3:
        return Missing("needs three pages with the pool's use")
    third = max(1, len(points) // 3)
    early, late = points[:third], points[-third:]
    span = mean([t for t, _ in late]) - mean([t for t, _ in early])
    return Found((mean([u for _, u in late]) - mean([u for _, u in early])) / span, _pool_series(view))


def _other_pool(view: View, name: str) -> Result:
    return view.gauge(f"{name}_used_ratio", max)


def _evictable_ratio(view: View, _: Params) -> Result:
    evictable, last = view.last("l1_evictable_tokens"), view.snapshots[-1] if view.snapshots else None
    if evictable is None or last is None or not last.pool.capacity:
        return view.why_missing("l1_evictable_tokens")
    return Found(evictable.value / last.pool.capacity, (evictable.series,))


def _available_ratio(view: View, _: Params) -> Result:
    available, last = view.last("l1_available_tokens"), view.snapshots[-1] if view.snapshots else None
    if available is None or last is None or not last.pool.capacity:
        return view.why_missing("l1_available_tokens")
    return Found(available.value / last.pool.capacity, (available.series,))


SIGNALS = (
    Signal("l1_used_ratio_mean", "ratio", "mean share of the pool held by requests", lambda v, _: _ratio(v, "mean")),
    Signal("l1_used_ratio_max", "ratio", "largest share of the pool held by requests", lambda v, _: _ratio(v, "max")),
    Signal("l1_used_ratio_last", "ratio", "share of the pool held at the end", lambda v, _: _ratio(v, "last")),
    Signal("l1_capacity_tokens", "tokens", "size of the pool", _capacity),
    Signal("l1_free_min_tokens", "tokens", "fewest tokens free or evictable", lambda v, _: _free(v, "min")),
    Signal("l1_free_max_tokens", "tokens", "most tokens free or evictable", lambda v, _: _free(v, "max")),
    Signal("l1_free_last_tokens", "tokens", "tokens free or evictable at the end", lambda v, _: _free(v, "last")),
    Signal("l1_evictable_ratio", "ratio", "share of the pool that is cached and can be reclaimed", _evictable_ratio),
    Signal("l1_available_ratio", "ratio", "share of the pool that is truly free", _available_ratio),
    Signal("l1_used_slope", "tokens/s", "growth of the tokens held: last third against first third", _slope),
    Signal("head_need_tokens", "tokens", "what a typical head of the queue needs at once, in whole blocks", _head_need),
    Signal("head_fits_ratio", "ratio", "share of pages with a queue on which a typical head would have had KV space",
           lambda v, _: _fits_share(v, False)),
    Signal("head_fits_at_top_ratio", "ratio", "the same, on the pages on which running is at its top",
           lambda v, _: _fits_share(v, True)),
    Signal("l1_reserved_low_tokens", "tokens", "reserved for future output, if none is longer than any output so far",
           lambda v, _: _reserved(v, output_reserve(v))),
    Signal("l1_reserved_high_tokens", "tokens", "reserved for future output, if no client sets max_tokens",
           lambda v, _: _reserved(v, CLIP_TOKENS)),
    Signal("reserves_output", "bool", "the engine reserves future output at admission",
           lambda v, _: Found(v.number("reserves_output") or 0.0)),
    Signal("swa_used_ratio", "ratio", "largest share of the sliding-window pool held", lambda v, _: _other_pool(v, "swa")),
    Signal("state_used_ratio", "ratio", "largest share of the state (mamba) slots held", lambda v, _: _other_pool(v, "state")),
)
INTERVALS = (
    IntervalSignal("kv_surely_open", "bool", "even the longest possible prompt had room at both ends", _surely_open),
)


# ---------------------------------------------------------------- the pool at the end of the window


def pool_at_end(view: View, params: Params) -> PoolState:
    """The three states now, as ranges wide enough for what the gauges leave out.

    vLLM's gauge is taken at the end of a step, after frees and before the next admission: it reads low, never high, so the
    truth lies between it and the most of the last seconds. SGLang's lags by up to a report: it lies between the extremes.
    """
    if not view.snapshots:
        return PoolState(reason="no page in the window")
    last = view.snapshots[-1]
    held, capacity = used(last), last.pool.capacity
    if held is None or capacity is None:
        return last.pool
    since = last.at - scalar(params, "pool_lookback_seconds")
    recent = [u for s in view.snapshots if s.at > since and (u := used(s)) is not None]
    low, high = _band(held, min(recent), max(recent), scalar(params, "pool_range_ratio") * capacity,
                      end_of_step=_text(view, "gauge_timing") == "end_of_step")
    caching = last.pool.evictable != 0
    room = Range(0.0, capacity - low) if caching else _quantity(capacity - high, capacity - low)
    exact = [s.pool for s in view.snapshots if s.at > since and isinstance(s.pool.evictable, float | int)]
    evictable = _spread([p.evictable for p in exact]) if exact and caching else (room if caching else 0.0)
    available = _spread([p.available for p in exact]) if exact and caching else room
    return PoolState(capacity, _quantity(low, high), evictable, available, last.pool.reason, last.pool.name)


def _text(view: View, name: str) -> str:
    fact = view.fact(name)
    return "" if fact is None else str(fact.value)


def _band(held: float, low: float, high: float, width: float, *, end_of_step: bool) -> tuple[float, float]:
    if end_of_step:
        return held, min(high, held + width)
    return max(low, held - width / 2), min(high, held + width / 2)


def _quantity(low: float, high: float) -> Quantity:
    return low if high - low < 1 else Range(low, high)


def _spread(values: list[Quantity]) -> Quantity:
    numbers = [float(v) for v in values if isinstance(v, float | int)]
    return _quantity(min(numbers), max(numbers)) if numbers else None

