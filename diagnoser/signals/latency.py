"""TTFT, queue and prefill times. A percentile is quoted as the bucket it lies in, never finer."""

from __future__ import annotations

from diagnoser.model import Histogram
from diagnoser.signals.base import Params, Signal
from diagnoser.signals.promql import Edge, Expr, Quiet, mean_of
from diagnoser.signals.requests import WAITING, waiting
from diagnoser.signals.view import Found, Missing, Result, View, quantile_bucket


def _bucket(view: View, q: float, end: int) -> Result:
    histogram = view.histogram("ttft_seconds")
    if isinstance(histogram, Missing):
        return histogram
    bucket = quantile_bucket(histogram, q)
    if bucket is None:
        return Missing("no first token in this window")
    return Found(bucket[end], (histogram.series,))


def _silent(view: View, _: Params) -> Result:
    """Seconds at the end of the window without a first token although somebody waits."""
    points = [
        (s.at, h.count, waiting(s)) for s in view.snapshots if (h := s.histograms.get("ttft_seconds")) is not None
    ]
    if len(points) < 2:
        return Missing("needs two pages with a TTFT histogram")
    since = points[-1][0]
    for at, count, queue in reversed(points):
        if count != points[-1][1] or not queue:
            break
        since = at
    histogram = view.lifetime("ttft_seconds")
    return Found(points[-1][0] - since, (histogram.series,) if isinstance(histogram, Histogram) else ())


SIGNALS = (
    Signal(
        "ttft_mean_seconds",
        "seconds",
        "mean TTFT of those who got a first token",
        lambda v, _: v.observed_mean("ttft_seconds"),
        promql=mean_of("ttft_seconds"),
    ),
    Signal(
        "ttft_p50_low_seconds",
        "seconds",
        "lower edge of the bucket of the TTFT median",
        lambda v, _: _bucket(v, 0.5, 0),
        promql=Edge("ttft_seconds", 0.5, "low"),
    ),
    Signal(
        "ttft_p50_high_seconds",
        "seconds",
        "upper edge of the bucket of the TTFT median",
        lambda v, _: _bucket(v, 0.5, 1),
        promql=Edge("ttft_seconds", 0.5, "high"),
    ),
    Signal(
        "ttft_p99_low_seconds",
        "seconds",
        "lower edge of the bucket of the TTFT P99",
        lambda v, _: _bucket(v, 0.99, 0),
        promql=Edge("ttft_seconds", 0.99, "low"),
    ),
    Signal(
        "ttft_p99_high_seconds",
        "seconds",
        "upper edge of the bucket of the TTFT P99",
        lambda v, _: _bucket(v, 0.99, 1),
        promql=Edge("ttft_seconds", 0.99, "high"),
    ),
    Signal(
        "ttft_silent_seconds",
        "seconds",
        "time at the end without a first token although somebody waits",
        _silent,
        promql=Expr(
            "{quiet} * ({w} > bool 0) * {silent_seconds}", quiet=Quiet("silent_seconds", "ttft_seconds"), w=WAITING
        ),
    ),
    Signal(
        "queue_mean_seconds",
        "seconds",
        "mean wait before first scheduling",
        lambda v, _: v.observed_mean("queue_seconds"),
        promql=mean_of("queue_seconds"),
    ),
    Signal(
        "prefill_mean_seconds",
        "seconds",
        "mean time from first scheduling to first token",
        lambda v, _: v.observed_mean("prefill_seconds"),
        promql=mean_of("prefill_seconds"),
    ),
)
