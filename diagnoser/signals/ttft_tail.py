"""The tail of TTFT: is it waiting or slow prefill? Tail counts add, percentiles do not.

P(TTFT > T) <= P(queue > s) + P(rest > T - s), compared only at bucket edges that the histograms share.
"""

from __future__ import annotations

from diagnoser.model import Histogram
from diagnoser.signals.base import Params, Signal, scalar
from diagnoser.signals.promql import Cannot
from diagnoser.signals.view import Found, Missing, Result, View


def _beyond(histogram: Histogram, edge: float) -> float:
    """Share of the observations above an edge of the histogram."""
    at = histogram.counts[histogram.edges.index(edge)]
    return (histogram.count - at) / histogram.count


def _tail(view: View, params: Params) -> tuple[float, Histogram, Histogram] | Missing:
    """The largest edge that TTFT and queue histograms share and at least a hundredth of the first tokens exceed."""
    ttft, queue = view.histogram("ttft_seconds"), view.histogram("queue_seconds")
    if isinstance(ttft, Missing):
        return ttft
    if isinstance(queue, Missing):
        return queue
    if not ttft.count or not queue.count:
        return Missing("nothing observed in this window")
    low = scalar(params, "ttft_target_seconds")
    edges = [e for e in ttft.edges if e in queue.edges and low <= e < float("inf") and _beyond(ttft, e) >= 0.01]
    return (max(edges), ttft, queue) if edges else Missing("TTFT has no tail above the target at a shared bucket edge")


def _tail_value(view: View, params: Params, what: str) -> Result:
    tail = _tail(view, params)
    if isinstance(tail, Missing):
        return tail
    edge, ttft, queue = tail
    beyond = _beyond(ttft, edge)
    if what == "edge":
        return Found(edge, (ttft.series,))
    if what == "ttft":
        return Found(beyond, (ttft.series,))
    if what == "queue":
        return Found(min(1.0, _beyond(queue, edge) / beyond), (ttft.series, queue.series))
    prefill = view.histogram("prefill_seconds")
    if isinstance(prefill, Missing):
        return prefill
    inner = [e for e in prefill.edges if e <= edge / 2]
    if not inner or not prefill.count:
        return Missing("no prefill time observed in this window")
    return Found(_beyond(prefill, max(inner)) / beyond, (ttft.series, prefill.series))


_EDGES = Cannot("it compares two histograms at the bucket edges that they share")


def _tail_signal(name: str, unit: str, meaning: str, what: str) -> Signal:
    return Signal(name, unit, meaning, lambda view, params: _tail_value(view, params, what), _EDGES)


SIGNALS = (
    _tail_signal("ttft_tail_edge_seconds", "seconds", "shared bucket edge at which the tail is compared", "edge"),
    _tail_signal("ttft_tail_ratio", "ratio", "first tokens that took longer than that", "ttft"),
    _tail_signal("ttft_tail_queue_ratio", "ratio", "of those, what queue times beyond the edge explain", "queue"),
    _tail_signal("ttft_tail_rest_ratio", "ratio", "of those, what prefills beyond half of it could explain", "rest"),
)
