"""TTFT and its parts. A percentile is quoted as the bucket it lies in, never finer."""

from __future__ import annotations

from diagnoser.model import Histogram
from diagnoser.signals.base import Params, Signal, scalar
from diagnoser.signals.requests import waiting
from diagnoser.signals.view import Found, Missing, Result, View, quantile_bucket


def _bucket(view: View, q: float, end: int) -> Result:
    histogram = view.histogram("ttft_seconds")
    if isinstance(histogram, Missing):
        return histogram
    bucket = quantile_bucket(histogram, q)
    if bucket is None:
        return Missing("no first token in this window")
    return Found(bucket[end], (histogram.series,))


def _mean(view: View, name: str) -> Result:
    histogram = view.histogram(name)
    if isinstance(histogram, Missing):
        return histogram
    if histogram.count <= 0:
        return Missing(f"nothing observed in {histogram.series} in this window")
    return Found(histogram.sum / histogram.count, (histogram.series,))


def _share(view: View, part: str, params: Params) -> Result:
    """Mean of the part against mean TTFT: means add, percentiles do not.

    Only where about as many requests show the part as a first token: vLLM observes the parts when a request
    finishes, so in an incident they tell of those who came before it.
    """
    numbers = [h.count for n in (part, "ttft_seconds") if not isinstance(h := view.histogram(n), Missing)]
    if len(numbers) == 2 and min(numbers) < scalar(params, "counts_agree_min") * max(numbers):
        return Missing(f"{numbers[0]:g} requests show it and {numbers[1]:g} a first token: not the same requests")
    of, ttft = _mean(view, part), _mean(view, "ttft_seconds")
    if isinstance(of, Missing):
        return of
    if isinstance(ttft, Missing):
        return ttft
    return Found(min(1.0, of.value / ttft.value) if ttft.value > 0 else 0.0, of.series + ttft.series)


def _rest(view: View, params: Params) -> Result:
    queue, prefill = _share(view, "queue_seconds", params), _share(view, "prefill_seconds", params)
    if isinstance(queue, Missing):
        return queue
    if isinstance(prefill, Missing):
        return prefill
    return Found(max(0.0, 1.0 - queue.value - prefill.value), queue.series + prefill.series)


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
        lambda v, _: _mean(v, "ttft_seconds"),
    ),
    Signal(
        "ttft_p50_low_seconds",
        "seconds",
        "lower edge of the bucket of the TTFT median",
        lambda v, _: _bucket(v, 0.5, 0),
    ),
    Signal(
        "ttft_p50_high_seconds",
        "seconds",
        "upper edge of the bucket of the TTFT median",
        lambda v, _: _bucket(v, 0.5, 1),
    ),
    Signal(
        "ttft_p99_low_seconds", "seconds", "lower edge of the bucket of the TTFT P99", lambda v, _: _bucket(v, 0.99, 0)
    ),
    Signal(
        "ttft_p99_high_seconds", "seconds", "upper edge of the bucket of the TTFT P99", lambda v, _: _bucket(v, 0.99, 1)
    ),
    Signal("ttft_silent_seconds", "seconds", "time at the end without a first token although somebody waits", _silent),
    Signal(
        "queue_mean_seconds", "seconds", "mean wait before first scheduling", lambda v, _: _mean(v, "queue_seconds")
    ),
    Signal(
        "prefill_mean_seconds",
        "seconds",
        "mean time from first scheduling to first token",
        lambda v, _: _mean(v, "prefill_seconds"),
    ),
    Signal(
        "queue_share_ratio", "ratio", "mean queue time against mean TTFT", lambda v, p: _share(v, "queue_seconds", p)
    ),
    Signal(
        "prefill_share_ratio",
        "ratio",
        "mean prefill time against mean TTFT",
        lambda v, p: _share(v, "prefill_seconds", p),
    ),
    Signal("rest_share_ratio", "ratio", "TTFT that is neither queue nor prefill: front end, tokenizer, network", _rest),
)
