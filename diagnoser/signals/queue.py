"""Who runs, who waits, and whether the number of running requests sits on a plateau."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diagnoser.signals.base import IntervalSignal, Params, Signal, scalar
from diagnoser.signals.promql import Expr, First, Grew, Number, Of, Over, Stepped, Third, Told, Trait, known
from diagnoser.signals.requests import DEFERRED, OUTSIDE, RUNNING, WAITED, WAITING, deferred, queue, queued, waits
from diagnoser.signals.view import Found, Missing, Result, View, grown_between, mean


def _waiting_stat(view: View, pick: str) -> Result:
    values = queue(view)
    last = view.last("waiting_requests")
    if not values:
        return view.why_missing("waiting_requests")
    picked = {"min": min(values), "max": max(values), "mean": mean(values), "last": values[-1], "first": values[0]}[
        pick
    ]
    return Found(picked, (last.series,) if last else ())


def _waiting_scrapes(view: View, _: Params) -> Result:
    return Found(float(len(queued(view))))


def _waiting_trend(view: View, _: Params) -> Result:
    points = [(s.at, w) for s, w in zip(view.snapshots, waits(view), strict=True) if w is not None]
    if len(points) < 3:
        return Missing("needs three pages")
    third = max(1, len(points) // 3)
    early, late = points[:third], points[-third:]
    span = mean([t for t, _ in late]) - mean([t for t, _ in early])
    return Found((mean([w for _, w in late]) - mean([w for _, w in early])) / span)


def _deferred_max(view: View, _: Params) -> Result:
    if not deferred_known(view):
        return view.why_missing("waiting_deferred_requests")
    return Found(max(deferred(s) for s in view.snapshots))


# ---------------------------------------------------------------- plateau


@dataclass(frozen=True, slots=True)
class Batch:
    """Mean decode batch of the intervals in which somebody waits at both ends, and the largest of them."""

    sizes: tuple[float, ...]
    top: float


def decode_batch(view: View, params: Params) -> Batch | None:
    """Running requests counted exactly: tokens decoded a decode pass. Needs both counters and one token a request a
    pass.

    SGLang's gauge leaves out the batch being admitted, so a full engine of 8 slots mostly reads 7; this does not.
    Speculative decoding breaks it (several tokens a pass): then the mean exceeds the gauge and None is returned.
    """
    sizes = []
    for i, (a, b) in enumerate(view.pairs()):
        passes, tokens = grown_between(a, b, "decode_passes_total"), grown_between(a, b, "decode_tokens_total")
        if (
            passes
            and tokens is not None
            and passes >= scalar(params, "plateau_passes_min")
            and all(waits(view)[i : i + 2])
        ):
            sizes.append(tokens / passes)
    gauge = max((s.value("running_requests") or 0.0 for s in queued(view)), default=0.0)
    if not sizes or max(sizes) > scalar(params, "speculation_factor") * (gauge + 1):
        return None
    return Batch(tuple(sizes), max(gauge, float(round(max(sizes) - scalar(params, "batch_noise_requests")))))


def running_top(view: View, params: Params) -> float | None:
    """The largest number of running requests seen while somebody waited."""
    batch, pages = decode_batch(view, params), queued(view)
    gauge = max((s.value("running_requests") or 0.0 for s in pages), default=None)
    return batch.top if batch else gauge


def _nobody_waits(view: View) -> Missing:
    return Missing("nobody waited in this window") if view.snapshots else Missing("no page in the window")


def _running(view: View, pick: str) -> Result:
    picks: dict[str, Callable[[list[float]], float]] = {"max": max, "min": min, "mean": mean}
    return view.gauge("running_requests", picks[pick])


def _both(view: View, _: Params) -> Result:
    pages = zip(view.snapshots, waits(view), strict=True)
    values = [(s.value("running_requests") or 0.0) + w for s, w in pages if w is not None]
    return Found(max(values), _running_series(view)) if values else view.why_missing("waiting_requests")


def _running_top(view: View, params: Params) -> Result:
    top = running_top(view, params)
    return _nobody_waits(view) if top is None else Found(top, _running_series(view))


def _running_series(view: View) -> tuple[str, ...]:
    last = view.last("running_requests")
    return (last.series,) if last else ()


def _at_top(view: View, slack: float) -> Result:
    pages = queued(view)
    if not pages:
        return _nobody_waits(view)
    running = [s.value("running_requests") or 0.0 for s in pages]
    return Found(sum(r >= max(running) - slack for r in running) / len(running), _running_series(view))


def _batch_at_top(view: View, params: Params) -> Result:
    batch = decode_batch(view, params)
    if batch is None:
        return Missing("needs decode passes and decoded tokens counted apart (SGLang from 0.5.7), without speculation")
    hits = sum(abs(size - batch.top) < 0.5 for size in batch.sizes)
    return Found(hits / len(batch.sizes), ("decode_tokens_total / decode_passes_total",))


def _batch_intervals(view: View, params: Params) -> Result:
    batch = decode_batch(view, params)
    return Found(float(len(batch.sizes)) if batch else 0.0)


def _turnover(view: View, _: Params) -> Result:
    return view.increase("finished_requests_total")


def slot_limit(view: View) -> float | None:
    """Requests that may run at once, where it is known: from HTTP, a facts file or a flag. On no engine's page."""
    return next((v for name in ("max_num_seqs", "max_running_requests") if (v := view.number(name)) is not None), None)


def _slot_limit(view: View, _: Params) -> Result:
    limit = slot_limit(view)
    return (
        Missing("on no page of either engine: give --fact max_num_seqs=N or max_running_requests=N")
        if limit is None
        else Found(limit)
    )


def _slots_free(view: View, i: int) -> float | None:
    limit = slot_limit(view)
    running = [v for s in view.pair(i) if (v := s.value("running_requests")) is not None]
    if limit is None or not running:
        return None
    return limit - max(running) - (view.number("running_gauge_slack") or 0.0)


def deferred_known(view: View) -> bool:
    """The pages tell the requests that wait for something outside apart from the others."""
    return any(view.last(name) is not None for name in ("waiting_deferred_requests", *OUTSIDE))


def _queue_present(view: View, i: int) -> float | None:
    start, end = waits(view)[i : i + 2]
    return None if start is None or end is None else ((start > 0) + (end > 0)) / 2


def _deferred_ratio(view: View, i: int) -> float | None:
    if not deferred_known(view):
        return None
    end = next((at for at in (i + 1, i) if waits(view)[at]), None)
    return None if end is None else min(1.0, deferred(view.snapshots[end]) / (waits(view)[end] or 1.0))


_QUEUED_RUNNING = Over("max", Expr("{r} and ({w} > 0)", r=RUNNING, w=WAITING))
BATCH = Expr(
    "({tokens} / ({passes} >= {plateau_passes_min})) and ({w} > 0) and ({before} > 0)",
    tokens=Stepped("decode_tokens_total"),
    passes=Stepped("decode_passes_total"),
    w=WAITING,
    before=WAITED,
)
_BATCH_TOP = Expr(
    "round(({most} <= {speculation_factor} * ({gauge} + 1)) - {batch_noise_requests})",
    most=Over("max", BATCH),
    gauge=_QUEUED_RUNNING,
)
TOP = First(Expr("({batch} > {gauge}) or {gauge}", batch=_BATCH_TOP, gauge=_QUEUED_RUNNING), _QUEUED_RUNNING)
SLOTS = Told("max_num_seqs", "max_running_requests")
SIGNALS = (
    Signal(
        "waiting_min_requests",
        "requests",
        "fewest requests waiting in the window",
        lambda v, _: _waiting_stat(v, "min"),
        promql=Over("min", WAITING),
    ),
    Signal(
        "waiting_mean_requests",
        "requests",
        "mean of requests waiting",
        lambda v, _: _waiting_stat(v, "mean"),
        promql=Over("avg", WAITING),
    ),
    Signal(
        "waiting_max_requests",
        "requests",
        "most requests waiting",
        lambda v, _: _waiting_stat(v, "max"),
        promql=Over("max", WAITING),
    ),
    Signal(
        "waiting_last_requests",
        "requests",
        "requests waiting at the end",
        lambda v, _: _waiting_stat(v, "last"),
        promql=Over("last", WAITING),
    ),
    Signal(
        "waiting_slope",
        "requests/s",
        "growth of the queue: last third against first third",
        _waiting_trend,
        promql=Expr(
            "({late} - {early}) / ({window_seconds} * 2 / 3)",
            late=Third("late", WAITING),
            early=Third("early", WAITING),
        ),
    ),
    Signal(
        "waiting_scrapes",
        "pages",
        "pages on which somebody waits",
        _waiting_scrapes,
        promql=Over("sum", Expr("{w} > bool 0", w=WAITING)),
    ),
    Signal(
        "waiting_deferred_max_requests",
        "requests",
        "most requests parked on something outside the pool",
        _deferred_max,
        promql=Over("max", DEFERRED),
    ),
    Signal(
        "deferred_known",
        "bool",
        "requests that wait for something outside are told apart",
        lambda v, _: Found(float(deferred_known(v))),
        promql=known(Over("last", DEFERRED)),
    ),
    Signal(
        "running_mean_requests",
        "requests",
        "mean of running requests",
        lambda v, _: _running(v, "mean"),
        promql=Over("avg", "running_requests"),
    ),
    Signal(
        "running_max_requests",
        "requests",
        "most running requests",
        lambda v, _: _running(v, "max"),
        promql=Over("max", "running_requests"),
    ),
    Signal(
        "running_min_requests",
        "requests",
        "fewest running requests",
        lambda v, _: _running(v, "min"),
        promql=Over("min", "running_requests"),
    ),
    Signal(
        "running_or_waiting_max_requests",
        "requests",
        "most requests running and waiting together",
        _both,
        promql=Over("max", Expr("{r} + {w}", r=RUNNING, w=WAITING)),
    ),
    Signal("running_top_requests", "requests", "most running requests while somebody waited", _running_top, promql=TOP),
    Signal(
        "running_at_top_ratio",
        "ratio",
        "share of pages with a queue on which running is at its top",
        lambda v, _: _at_top(v, 0.0),
        promql=Over("avg", Expr("({r} >= bool {top}) and ({w} > 0)", r=RUNNING, top=_QUEUED_RUNNING, w=WAITING)),
    ),
    Signal(
        "running_near_top_ratio",
        "ratio",
        "share of pages with a queue on which running is at most one below its top",
        lambda v, _: _at_top(v, 1.0),
        promql=Over("avg", Expr("({r} >= bool ({top} - 1)) and ({w} > 0)", r=RUNNING, top=_QUEUED_RUNNING, w=WAITING)),
    ),
    Signal(
        "decode_batch_at_top_ratio",
        "ratio",
        "share of intervals with a queue whose mean decode batch is the top",
        _batch_at_top,
        promql=Over("avg", Expr("abs({b} - {top}) < bool 0.5", b=BATCH, top=Of("running_top_requests"))),
    ),
    Signal(
        "decode_batch_intervals",
        "intervals",
        "intervals with a queue whose decode batch is known",
        _batch_intervals,
        promql=First(Over("count", BATCH), Number(0.0)),
    ),
    Signal(
        "finished_requests",
        "requests",
        "requests that finished in the window",
        _turnover,
        promql=Grew("finished_requests_total"),
    ),
    Signal("slots_limit_requests", "requests", "requests that may run at once", _slot_limit, promql=SLOTS),
    Signal(
        "slots_limit_known",
        "bool",
        "the slot limit is known",
        lambda v, _: Found(float(slot_limit(v) is not None)),
        promql=First(Expr("{s} * 0 + 1", s=SLOTS), Number(0.0)),
    ),
)
INTERVALS = (
    IntervalSignal(
        "queue_present_ratio",
        "ratio",
        "share of the interval's two ends at which somebody waits",
        _queue_present,
        promql=Expr("{w} > bool 0", w=WAITING),
    ),
    IntervalSignal(
        "deferred_ratio",
        "ratio",
        "share of the waiting that is parked on something outside the pool",
        _deferred_ratio,
        promql=Expr("clamp_max({d} / ({w} > 0), 1)", d=DEFERRED, w=WAITING),
    ),
    IntervalSignal(
        "slots_free_requests",
        "requests",
        "slot limit less running requests",
        _slots_free,
        promql=Expr("{limit} - {r} - {slack}", limit=SLOTS, r=RUNNING, slack=Trait("running_gauge_slack")),
    ),
)
