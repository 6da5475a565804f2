"""What comes next: when the pool is full, how the load compares with what the engine can do, how large a pool would
do.

Source of the formulas: Little's law. Their measured errors: docs/forecast.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from diagnoser.signals.base import Params, Signal, scalar
from diagnoser.signals.offered import (
    NO_WAITING,
    Load,
    admissions,
    arrivals,
    completions,
    load,
    output_length,
    standing,
    stretch,
)
from diagnoser.signals.promql import Ask, Cannot, Expr, First, Grew, Lately, Number, Observed, Of, Over, Start, Unless
from diagnoser.signals.requests import WAITING, waiting
from diagnoser.signals.room import FREE, USED_RATIO, free, head_need, used
from diagnoser.signals.view import Found, Missing, Result, View, mean

# ---------------------------------------------------------------- when is the pool full


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through the tokens held: tokens a second, and the share of their variance it explains."""

    slope: float
    fit: float
    points: int


def trend(view: View) -> Trend | None:
    """Least squares through the tokens held on every page; None with fewer than three points."""
    points = [(s.at, u) for s in view.snapshots if (u := used(s)) is not None]
    if len(points) < 3:
        return None
    t0, u0 = mean([t for t, _ in points]), mean([u for _, u in points])
    tt = sum((t - t0) ** 2 for t, _ in points)
    tu = sum((t - t0) * (u - u0) for t, u in points)
    uu = sum((u - u0) ** 2 for _, u in points)
    return Trend(tu / tt, tu * tu / (tt * uu) if uu > 0 else 0.0, len(points))


def _trend(view: View, pick: Callable[[Trend], float]) -> Result:
    found = trend(view)
    return Missing("needs three pages with the pool's use") if found is None else Found(pick(found))


def _exhaustion(view: View, params: Params) -> Result:
    """Free plus evictable tokens less what a typical prompt needs at once, over the growth of the tokens held."""
    found, least, fit = trend(view), scalar(params, "trend_points_min"), scalar(params, "trend_fit_min")
    if found is None or found.points < least:
        return Missing(f"needs {least:g} pages with the pool's use")
    if found.slope <= 0:
        return Missing("no trend: the tokens held do not grow")
    if found.fit < fit:
        return Missing(f"no trend: a line explains {found.fit:.0%} of the variance, {fit:.0%} are needed")
    room, need = free(view.snapshots[-1]), head_need(view)
    if room is None:
        return view.why_missing("l1_capacity_tokens")
    return Found(max(0.0, room - (need[0] if need else 0.0)) / found.slope)


# ---------------------------------------------------------------- the queue


def _ahead(view: View, params: Params) -> Result:
    queue, came, went = _queue(view), arrivals(view), admissions(view)
    if queue is None:
        return Missing(NO_WAITING)
    if isinstance(came, Missing) or isinstance(went, Missing):
        return came if isinstance(came, Missing) else went
    return Found(max(0.0, queue + (came.value - went.value) * scalar(params, "ahead_seconds")), came.series)


def _queue(view: View) -> float | None:
    return waiting(view.snapshots[-1]) if view.snapshots else None


def _wait(view: View, _: Params) -> Result:
    queue, went = _queue(view), admissions(view)
    if queue is None:
        return Missing(NO_WAITING)
    if isinstance(went, Missing):
        return went
    if went.value <= 0:
        return Found(0.0) if queue == 0 else Missing("nobody was admitted in the window")
    return Found(queue / went.value, went.series)


# ---------------------------------------------------------------- load against the pool


def _of_load(pick: Callable[[Load, View, Params], Result]) -> Callable[[View, Params], Result]:
    def compute(view: View, params: Params) -> Result:
        found = load(view, params)
        return found if isinstance(found, Missing) else pick(found, view, params)

    return compute


def _most(found: Load, params: Params) -> float:
    """Requests a second that could be served: with a standing queue, those that are; else what the pool would hold."""
    return found.served if found.standing else scalar(params, "pool_used_most") * found.capacity / found.cost


def _rho(found: Load, _: View, params: Params) -> Result:
    return Found(found.arriving / _most(found, params), found.series)


def _required_low(found: Load, view: View, params: Params) -> Result:
    """The pool for the target if steps take as long as now, however many run."""
    target = scalar(params, "rho_target")
    if found.refused:
        return Found(found.capacity * found.arriving / found.served / target, found.series)
    if found.standing and view.number("reserves_output"):
        return Missing("somebody waits although a typical head would fit: what output it reserves is on no page")
    return Found(found.arriving * found.cost / (target * scalar(params, "pool_used_most")), found.series)


def _required(found: Load, view: View, params: Params) -> Result:
    """The middle (on a scale of ratios) between the lower and the upper estimate: which part of the lost time grows
    with the requests served cannot be told from outside.
    """
    low, high = _required_low(found, view, params), _required_high(found, view, params)
    if isinstance(low, Missing) or isinstance(high, Missing):
        return low if isinstance(low, Missing) else high
    return Found(math.sqrt(low.value * high.value), found.series)


def _required_high(found: Load, view: View, params: Params) -> Result:
    """The pool if all that is no fast decoding (prefill, recomputing, stalls) grows with the requests served."""
    low, lost = _required_low(found, view, params), stretch(view, params)
    if isinstance(low, Missing) or isinstance(lost, Missing) or not found.refused:
        return low
    over = found.arriving / found.served
    left = 1.0 - over * lost.value
    if left < scalar(params, "step_time_left_min"):
        return Missing(
            f"perhaps no pool alone carries this load: {lost.value:.0%} of the time goes to prefill, recomputing and"
            f" stalls, and {over:.1f} times as many requests would need all of it"
        )
    return Found(low.value * (1.0 - lost.value) / left, found.series)


def _resident(view: View, _: Params) -> Result:
    held = [u for s in view.snapshots if (u := used(s)) is not None]
    running = [r for s in view.snapshots if (r := s.value("running_requests")) is not None]
    if not held or not running or sum(running) <= 0:
        return view.why_missing("l1_used_ratio") if not held else Missing("nobody ran in the window")
    return Found(mean(held) / mean(running))


def _concurrency(view: View, params: Params) -> Result:
    each, capacity = _resident(view, params), view.snapshots[-1].pool.capacity if view.snapshots else None
    if isinstance(each, Missing):
        return each
    if not capacity or each.value <= 0:
        return Missing("nothing is held") if capacity else view.why_missing("l1_capacity_tokens")
    return Found(scalar(params, "pool_used_most") * capacity / each.value)


# ---------------------------------------------------------------- the same for a metrics server

ADMISSIONS = Unless(
    "queue_time_at_admission",
    on=Expr("{c} / {window_seconds}", c=First(Observed("queue_seconds", "count"), Observed("ttft_seconds", "count"))),
    off=Expr("{c} / {window_seconds}", c=Observed("ttft_seconds", "count")),
)
ARRIVALS = Expr(
    "({admitted} + ({last} - {first}) / ({window_seconds} - {step_seconds})"
    " + ({shed} or {last} * 0) / {window_seconds}) >= 0",
    admitted=ADMISSIONS,
    last=Over("last", WAITING),
    first=Start(WAITING),
    shed=First(Grew("rejected_requests_total"), Expr("{w} * 0", w=Over("last", WAITING))),
)
OUTPUT_LENGTH = First(
    Expr(
        "{s} / ({c} >= {finished_min})",
        s=Observed("generation_tokens", "sum"),
        c=Observed("generation_tokens", "count"),
    ),
    Expr("({t} > 0) / ({f} >= {finished_min})", t=Grew("generation_tokens_total"), f=Grew("finished_requests_total")),
)
SERVED = Unless(
    "queue_time_at_admission",
    on=First(
        Expr(
            "{t} / {window_seconds} / clamp_min({length} - 1, 1)",
            t=Grew("decode_tokens_total"),
            length=Of("output_mean_tokens"),
        ),
        Expr("{t} / {window_seconds} / {length}", t=Grew("generation_tokens_total"), length=Of("output_mean_tokens")),
    ),
    off=Expr("{t} / {window_seconds} / {length}", t=Grew("generation_tokens_total"), length=Of("output_mean_tokens")),
)
HELD = Unless(
    "single_pool",
    on=Expr("{u} * {c}", u=Over("avg", USED_RATIO), c=Of("l1_capacity_tokens")),
    off=Over("avg", "l1_used_tokens"),
)
STANDING = Expr("{share} >= bool {queue_standing_most}", share=Over("avg", Expr("{w} > bool 0", w=WAITING)))
def _fit(reading: str) -> Ask:
    """R squared = slope^2 var(t) / var(u); n times a step apart have the variance step^2 (n^2 - 1) / 12."""
    return Expr(
        "clamp_max({d} ^ 2 * {step_seconds} ^ 2 * (({n} >= 3) ^ 2 - 1) / 12 / ({v} > 0), 1)",
        d=Lately("deriv", reading),
        v=Over("stdvar", reading),
        n=Over("count", reading),
    )


FIT = Unless("single_pool", on=_fit("l1_used_ratio"), off=_fit("l1_used_tokens"))
VARIANCE = Unless("single_pool", on=Over("stdvar", "l1_used_ratio"), off=Over("stdvar", "l1_used_tokens"))


POINTS = Unless("single_pool", on=Over("count", "l1_used_ratio"), off=Over("count", "l1_used_tokens"))
MOST = Expr(
    "({served} > 0) * (({standing} == 1) or ({pool_used_most} / ({used} > 0)))",
    served=Of("service_rate"),
    standing=Of("queue_standing"),
    used=Unless(
        "single_pool",
        on=Over("avg", USED_RATIO),
        off=Expr("{u} / ({c} > 0)", u=Over("avg", "l1_used_tokens"), c=Of("l1_capacity_tokens")),
    ),
)
"""`_most` above: the size of the pool cancels out of capacity / cost."""
SIGNALS = (
    Signal(
        "time_to_exhaustion_seconds",
        "seconds",
        "until a typical prompt finds no room if the pool fills on along a straight line",
        _exhaustion,
        promql=Expr(
            "{room} and ({fit} >= {trend_fit_min}) and ({n} >= {trend_points_min})",
            room=Unless(
                "single_pool",
                on=Expr(
                    "clamp_min(1 - {used} - ({need} / {c} or {zero}), 0) / ({d} > 0)",
                    used=Over("last", USED_RATIO),
                    need=Of("head_need_tokens"),
                    c=Of("l1_capacity_tokens"),
                    zero=Number(0.0),
                    d=Lately("deriv", "l1_used_ratio"),
                ),
                off=Expr(
                    "clamp_min({free} - ({need} or {zero}), 0) / ({d} > 0)",
                    free=Over("last", FREE),
                    need=Of("head_need_tokens"),
                    zero=Number(0.0),
                    d=Lately("deriv", "l1_used_tokens"),
                ),
            ),
            fit=FIT,
            n=POINTS,
        ),
    ),
    Signal(
        "used_trend_slope",
        "tokens/s",
        "slope of the line through the tokens held",
        lambda v, _: _trend(v, lambda t: t.slope),
        promql=Expr(
            "{d} and ({n} >= 3)",
            d=Unless(
                "single_pool",
                on=Expr("{d} * {c}", d=Lately("deriv", "l1_used_ratio"), c=Of("l1_capacity_tokens")),
                off=Lately("deriv", "l1_used_tokens"),
            ),
            n=POINTS,
        ),
    ),
    Signal(
        "used_trend_fit_ratio",
        "ratio",
        "share of the variance that the line explains (R squared)",
        lambda v, _: _trend(v, lambda t: t.fit),
        promql=First(FIT, Expr("{v} * 0 and ({n} >= 3)", v=VARIANCE, n=POINTS)),
    ),
    Signal(
        "used_trend_points",
        "pages",
        "pages the line goes through",
        lambda v, _: _trend(v, lambda t: float(t.points)),
        promql=Expr("{n} >= 3", n=POINTS),
    ),
    Signal(
        "arrival_rate",
        "requests/s",
        "requests that arrive: admitted, growth of the queue, shed",
        lambda v, _: arrivals(v),
        promql=ARRIVALS,
    ),
    Signal(
        "admission_rate",
        "requests/s",
        "requests that leave the queue for the batch",
        lambda v, _: admissions(v),
        promql=ADMISSIONS,
    ),
    Signal(
        "service_rate",
        "requests/s",
        "requests the engine gets done: tokens generated over tokens of an output",
        completions,
        promql=SERVED,
    ),
    Signal(
        "output_mean_tokens",
        "tokens",
        "mean output of those who finished in the window",
        output_length,
        promql=OUTPUT_LENGTH,
    ),
    Signal(
        "queue_standing",
        "bool",
        "somebody waits on nearly every page, so what gets done is all that can be",
        lambda v, p: Found(float(standing(v, p))),
        promql=STANDING,
    ),
    Signal(
        "token_seconds_per_request",
        "token-seconds",
        "KV tokens times seconds that a request holds",
        _of_load(lambda f, v, p: Found(f.cost, f.series)),
        promql=Expr("{held} / ({served} > 0) and {a}", held=HELD, served=Of("service_rate"), a=Of("arrival_rate")),
    ),
    Signal(
        "resident_tokens_per_request",
        "tokens",
        "tokens held over requests running",
        _resident,
        promql=Expr("{held} / ({r} > 0)", held=HELD, r=Over("avg", "running_requests")),
    ),
    Signal(
        "concurrency_bound_requests",
        "requests",
        "requests of the present size that the pool can run",
        _concurrency,
        promql=Expr(
            "{pool_used_most} * {c} / ({each} > 0)", c=Of("l1_capacity_tokens"), each=Of("resident_tokens_per_request")
        ),
    ),
    Signal(
        "service_rate_max",
        "requests/s",
        "requests a second that could be served",
        _of_load(lambda f, v, p: Found(_most(f, p), f.series)),
        promql=Expr("{most} and {a}", most=MOST, a=Of("arrival_rate")),
    ),
    Signal(
        "rho",
        "ratio",
        "arrivals over what could be served; above 1 the queue grows",
        _of_load(_rho),
        promql=Expr("{a} / ({m} > 0)", a=Of("arrival_rate"), m=MOST),
    ),
    Signal(
        "waiting_ahead_requests",
        "requests",
        "requests that wait a little later, if arrivals and admissions stay",
        _ahead,
        promql=Expr(
            "clamp_min({w} + ({a} - {s}) * {ahead_seconds}, 0)",
            w=Over("last", WAITING),
            a=Of("arrival_rate"),
            s=Of("admission_rate"),
        ),
    ),
    Signal(
        "predicted_wait_seconds",
        "seconds",
        "wait of a request that arrives now: waiting over admissions a second",
        _wait,
        promql=Expr("{w} / ({s} > 0) or ({w} == 0)", w=Over("last", WAITING), s=Of("admission_rate")),
    ),
    Signal(
        "step_stretch_ratio",
        "ratio",
        "share of the time that is no fast decoding: prefill, recomputing, stalls",
        stretch,
        promql=Cannot("it needs the fastest quarter of the steps"),
    ),
    Signal(
        "required_pool_low_tokens",
        "tokens",
        "pool for the target load if steps take as long as now",
        _of_load(_required_low),
        promql=Cannot("it needs to know whether the pool refused, page by page"),
    ),
    Signal(
        "required_pool_high_tokens",
        "tokens",
        "the same if all that is no fast decoding grows with the requests served",
        _of_load(_required_high),
        promql=Cannot("it needs the fastest quarter of the steps"),
    ),
    Signal(
        "required_pool_tokens",
        "tokens",
        "the middle of the two",
        _of_load(_required),
        promql=Cannot("it needs the fastest quarter of the steps"),
    ),
)
