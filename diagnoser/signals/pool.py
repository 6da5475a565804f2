"""The KV pool over the window: how much is held, and for how long a typical head would have found room."""

from __future__ import annotations

from diagnoser.signals.base import IntervalSignal, Params, Signal
from diagnoser.signals.promql import (
    Cannot,
    Expr,
    First,
    IfTold,
    Labelled,
    Number,
    Of,
    Over,
    Third,
    Told,
    Trait,
    Unless,
    known,
)
from diagnoser.signals.requests import RUNNING, WAITING, queued
from diagnoser.signals.room import (
    CAPACITY,
    CLIP,
    CLIP_TOKENS,
    FITS,
    FREE,
    LONGEST,
    NEED,
    OUTPUT,
    RATIO_NOW,
    USED_RATIO,
    fits,
    free,
    head_need,
    longest_prompt,
    output_reserve,
    reserved,
    used,
    used_ratio,
)
from diagnoser.signals.view import Found, Missing, Result, View, mean


def _fits_share(view: View, only_at_top: bool) -> Result:
    need, pages = head_need(view), queued(view)
    if need is None:
        return Missing("no prompt length on the page")
    if not pages:
        return Missing("nobody waited in this window")
    top = max(s.value("running_requests") or 0.0 for s in pages)
    answers = [
        a
        for s in pages
        if (not only_at_top or s.value("running_requests") == top) and (a := fits(view, s, need[0])) is not None
    ]
    if not answers:
        return view.why_missing("l1_used_tokens")
    return Found(mean([float(a) for a in answers]), (*_pool_series(view), need[1]))


def _explains_plateau(view: View, _: Params) -> Result:
    """Would KV space alone keep running where it is? Only if one request more cannot fit even with all of them fresh.

    An engine bound by KV space otherwise runs one more whenever its requests happen to be young. For an engine that
    reserves output the size of the reserve is unknown, so KV space always may be the reason.
    """
    if view.number("reserves_output"):
        return Found(1.0)
    need, pages = head_need(view), queued(view)
    if need is None or not pages:
        return Missing("no prompt length on the page" if pages else "nobody waited in this window")
    capacity = pages[-1].pool.capacity
    if capacity is None:
        return view.why_missing("l1_capacity_tokens")
    top = max(s.value("running_requests") or 0.0 for s in pages)
    return Found(float((top + 1) * need[0] > capacity), need[1:])


def _surely_open(view: View, i: int) -> float | None:
    """1 if even the longest possible prompt had room at both ends: then KV space cannot be the closed gate."""
    longest = longest_prompt(view)
    ends = view.pair(i)
    rooms = [r for s in ends if (r := free(s)) is not None]
    if longest is None or len(rooms) < 2:
        return None
    output = CLIP_TOKENS if view.number("reserves_output") else 0.0
    margin = (view.number("watermark") or 0.0) * (ends[1].pool.capacity or 0.0)
    need = max(reserved(view, s, output) for s in ends) + (2 if output else 1) * (longest + output) + margin
    return float(min(rooms) >= need)


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


def _output_reserve(view: View, _: Params) -> Result:
    output = output_reserve(view)
    return Missing("the engine reserves nothing") if output is None else Found(output)


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
    last = view.snapshots[-1] if view.snapshots else None
    evictable = None if last is None else last.readings.get("l1_evictable_tokens")
    if evictable is None or last is None or not last.pool.capacity:
        return view.why_missing("l1_evictable_tokens")
    return Found(evictable.value / last.pool.capacity, (evictable.series,))


def _available_ratio(view: View, _: Params) -> Result:
    last = view.snapshots[-1] if view.snapshots else None
    available = None if last is None else last.readings.get("l1_available_tokens")
    if available is None or last is None or not last.pool.capacity:
        return view.why_missing("l1_available_tokens")
    return Found(available.value / last.pool.capacity, (available.series,))


_UNCACHED = Labelled("enable_prefix_caching", "False")
"""vLLM without a prefix cache: nothing of what is free can be evictable."""
_FULL = Expr("({used} >= 1) * 0", used=Over("last", USED_RATIO))
"""Of a full pool nothing is evictable or free, whoever tells the split."""
SIGNALS = (
    Signal(
        "l1_used_ratio_mean",
        "ratio",
        "mean share of the pool held by requests",
        lambda v, _: _ratio(v, "mean"),
        promql=Over("avg", USED_RATIO),
    ),
    Signal(
        "l1_used_ratio_max",
        "ratio",
        "largest share of the pool held by requests",
        lambda v, _: _ratio(v, "max"),
        promql=Over("max", USED_RATIO),
    ),
    Signal(
        "l1_used_ratio_last",
        "ratio",
        "share of the pool held at the end",
        lambda v, _: _ratio(v, "last"),
        promql=Over("last", USED_RATIO),
    ),
    Signal("l1_capacity_tokens", "tokens", "size of the pool", _capacity, promql=CAPACITY),
    Signal(
        "l1_free_min_tokens",
        "tokens",
        "fewest tokens free or evictable",
        lambda v, _: _free(v, "min"),
        promql=Over("min", FREE),
    ),
    Signal(
        "l1_free_max_tokens",
        "tokens",
        "most tokens free or evictable",
        lambda v, _: _free(v, "max"),
        promql=Over("max", FREE),
    ),
    Signal(
        "l1_free_last_tokens",
        "tokens",
        "tokens free or evictable at the end",
        lambda v, _: _free(v, "last"),
        promql=Over("last", FREE),
    ),
    Signal(
        "l1_evictable_ratio",
        "ratio",
        "share of the pool that is cached and can be reclaimed",
        _evictable_ratio,
        promql=First(
            Expr("{e} / {c}", e=Over("last", "l1_evictable_tokens"), c=Of("l1_capacity_tokens")),
            Expr("{off} * 0", off=_UNCACHED),
            _FULL,
        ),
    ),
    Signal(
        "l1_available_ratio",
        "ratio",
        "share of the pool that is truly free",
        _available_ratio,
        promql=First(
            Expr("{a} / {c}", a=Over("last", "l1_available_tokens"), c=Of("l1_capacity_tokens")),
            Expr("1 - ({used} and {off})", used=Over("last", USED_RATIO), off=_UNCACHED),
            _FULL,
        ),
    ),
    Signal(
        "l1_used_slope",
        "tokens/s",
        "growth of the tokens held: last third against first third",
        _slope,
        promql=Expr(
            "({late} - {early}) / ({window_seconds} * 2 / 3) * {c}",
            late=Third("late", USED_RATIO),
            early=Third("early", USED_RATIO),
            c=Of("l1_capacity_tokens"),
        ),
    ),
    Signal(
        "head_need_tokens",
        "tokens",
        "what a typical head of the queue needs at once, in whole blocks",
        _head_need,
        promql=NEED,
    ),
    Signal(
        "head_fits_ratio",
        "ratio",
        "share of pages with a queue on which a typical head would have had KV space",
        lambda v, _: _fits_share(v, False),
        promql=Over("avg", Expr("{fits} and ({w} > 0)", fits=FITS, w=WAITING)),
    ),
    Signal(
        "head_fits_at_top_ratio",
        "ratio",
        "the same, on the pages on which running is at its top",
        lambda v, _: _fits_share(v, True),
        promql=Over(
            "avg",
            Expr(
                "{fits} and ({w} > 0) and ({r} >= {top})",
                fits=FITS,
                w=WAITING,
                r=RUNNING,
                top=Over("max", Expr("{r} and ({w} > 0)", r=RUNNING, w=WAITING)),
            ),
        ),
    ),
    Signal(
        "kv_explains_plateau",
        "bool",
        "one request more than the top cannot fit, even with all of them fresh",
        _explains_plateau,
        promql=Unless(
            "reserves_output",
            on=Number(1.0),
            off=Expr(
                "({top} + 1) * {need} > bool {c}",
                top=Of("running_top_requests"),
                need=Of("head_need_tokens"),
                c=Of("l1_capacity_tokens"),
            ),
        ),
    ),
    Signal(
        "l1_reserved_low_tokens",
        "tokens",
        "reserved for future output, if none is longer than any output so far",
        lambda v, _: _reserved(v, output_reserve(v)),
        promql=Unless(
            "reserves_output",
            on=Expr("{ratio} * {r} * {out}", ratio=RATIO_NOW, r=RUNNING, out=OUTPUT),
            off=Cannot("the engine reserves nothing"),
        ),
    ),
    Signal(
        "l1_reserved_high_tokens",
        "tokens",
        "reserved for future output, if no client sets max_tokens",
        lambda v, _: _reserved(v, CLIP_TOKENS),
        promql=Unless(
            "reserves_output",
            on=Expr("{ratio} * {r} * {clip}", ratio=RATIO_NOW, r=RUNNING, clip=CLIP),
            off=Cannot("the engine reserves nothing"),
        ),
    ),
    Signal(
        "output_reserve_tokens",
        "tokens",
        "output that the engine sets aside for one request: the longest so far, at most what it clips to",
        _output_reserve,
        promql=Unless("reserves_output", on=OUTPUT, off=Cannot("the engine reserves nothing")),
    ),
    Signal(
        "reserves_output",
        "bool",
        "the engine reserves future output at admission",
        lambda v, _: Found(v.number("reserves_output") or 0.0),
        promql=Trait("reserves_output"),
    ),
    Signal(
        "single_pool",
        "bool",
        "all layers share one pool",
        lambda v, _: Found(v.number("single_pool") or 0.0),
        promql=Trait("single_pool"),
    ),
    Signal(
        "state_pool_known",
        "bool",
        "the engine exports a pool of state slots",
        lambda v, _: Found(float(v.last("state_used_ratio") is not None)),
        promql=known(Over("last", "state_used_ratio")),
    ),
    Signal(
        "swa_used_ratio",
        "ratio",
        "largest share of the sliding-window pool held",
        lambda v, _: _other_pool(v, "swa"),
        promql=Over("max", "swa_used_ratio"),
    ),
    Signal(
        "state_used_ratio",
        "ratio",
        "largest share of the state (mamba) slots held",
        lambda v, _: _other_pool(v, "state"),
        promql=Over("max", "state_used_ratio"),
    ),
)
INTERVALS = (
    IntervalSignal(
        "kv_surely_open",
        "bool",
        "even the longest possible prompt had room at both ends",
        _surely_open,
        promql=Unless(
            "reserves_output",
            on=Expr(
                "{free} >= bool ({ratio} * {r} * {clip} + 2 * ({longest} + {clip}))",
                free=FREE,
                ratio=RATIO_NOW,
                r=RUNNING,
                clip=CLIP,
                longest=LONGEST,
            ),
            off=IfTold(
                "watermark",
                Expr(
                    "{free} >= bool ({longest} + {mark} * {c})",
                    free=FREE,
                    longest=LONGEST,
                    mark=Told("watermark"),
                    c=Of("l1_capacity_tokens"),
                ),
                Expr("{free} >= bool {longest}", free=FREE, longest=LONGEST),
            ),
        ),
    ),
)
