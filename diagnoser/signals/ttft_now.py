"""Those who still wait are in no histogram: Little's law gives estimates for them (waiting / first tokens a second).

It assumes first in, first out. Requests that were thrown out wait in the same queue, so with many of them it is too
long.
"""

from __future__ import annotations

from diagnoser.signals.base import Params, Signal
from diagnoser.signals.promql import Expr, Grew, Observed, Over, Start
from diagnoser.signals.requests import WAITING, queue
from diagnoser.signals.view import Found, Missing, Result, View, mean


def first_token_rate(view: View) -> Result:
    """First tokens a second."""
    histogram = view.histogram("ttft_seconds")
    if isinstance(histogram, Missing):
        return histogram
    if histogram.count <= 0 or view.seconds <= 0:
        return Missing("nobody got a first token in this window")
    return Found(histogram.count / view.seconds, (histogram.series,))


def _wait_next(view: View, _: Params) -> Result:
    """What somebody who arrives now waits, if first tokens go on at this rate."""
    waits, rate = queue(view), first_token_rate(view)
    if not waits:
        return view.why_missing("waiting_requests")
    return rate if isinstance(rate, Missing) else Found(mean(waits) / rate.value, rate.series)


def _queue_age(view: View, _: Params) -> Result:
    """How long the head must have waited: those who wait by the rate they arrived at (first in, first out)."""
    waits, rate = queue(view), first_token_rate(view)
    if not waits:
        return view.why_missing("waiting_requests")
    left = 0.0 if isinstance(rate, Missing) else rate.value
    arrived = left + ((waits[-1] - waits[0]) / view.seconds if view.seconds > 0 else 0.0)
    if arrived <= 0:
        return Missing("nobody arrived in this window")
    return Found(waits[-1] / arrived, () if isinstance(rate, Missing) else rate.series)


SIGNALS = (
    Signal(
        "aborted_requests",
        "requests",
        "aborted in the window; they never show a TTFT",
        lambda view, _: view.increase("aborted_requests_total"),
        promql=Grew("aborted_requests_total"),
    ),
    Signal(
        "ttft_wait_estimate_seconds",
        "seconds",
        "wait of a new arrival, estimated: waiting / first tokens",
        _wait_next,
        promql=Expr("{w} * {window_seconds} / ({c} > 0)", w=Over("avg", WAITING), c=Observed("ttft_seconds", "count")),
    ),
    Signal(
        "ttft_queue_age_estimate_seconds",
        "seconds",
        "time the head has waited, estimated",
        _queue_age,
        promql=Expr(
            "{last} / ({c} / {window_seconds} + ({last} - {first}) / ({window_seconds} - {step_seconds}) > 0)",
            last=Over("last", WAITING),
            first=Start(WAITING),
            c=Observed("ttft_seconds", "count"),
        ),
    ),
)
