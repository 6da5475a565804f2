"""Those who still wait are in no histogram: Little's law gives estimates for them (waiting / first tokens a second).

It assumes first in, first out. Requests that were thrown out wait in the same queue, so with many of them it is too
long. Where nobody still waits, the same law bounds the time in which anybody can have waited.
"""

from __future__ import annotations

from itertools import pairwise

from diagnoser.signals.base import Params, Signal
from diagnoser.signals.promql import Expr, First, Grew, Number, Observed, Over, Start
from diagnoser.signals.requests import WAITED, WAITING, queue
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


def _queue_upper(view: View, _: Params) -> Result:
    """All times to first token together: somebody who waited is in them with all of the wait, if nobody still waits.

    Pages far apart catch a moment's queue by chance, and it is no third of the window. Not where somebody can have
    waited without a first token in the window: at an end of it, thrown out, or gone. vLLM does not count who goes, so a
    queue on two pages in a row is believed.
    """
    waits, ttft = queue(view), view.histogram("ttft_seconds")
    thrown, gone = view.increase("preemptions_total"), view.increase("aborted_requests_total")
    if isinstance(ttft, Missing):
        return ttft
    if isinstance(thrown, Missing):
        return thrown
    if not waits or waits[0] or waits[-1]:
        return Missing("somebody waits at an end of the window") if waits else view.why_missing("waiting_requests")
    if any(a and b for a, b in pairwise(waits)):
        return Missing("somebody waits on two pages in a row")
    if thrown.value or (isinstance(gone, Found) and gone.value):
        return Missing("requests were thrown out or aborted in the window")
    if ttft.count <= 0 or view.seconds <= 0:
        return Missing("nobody got a first token in this window")
    return Found(min(1.0, ttft.sum / view.seconds), (ttft.series,))


SIGNALS = (
    Signal(
        "queue_upper_ratio",
        "ratio",
        "share of the window in which somebody can have waited, by all times to first token together",
        _queue_upper,
        promql=Expr(
            "clamp_max(({sum} / {window_seconds}) and ({first} == 0) and ({last} == 0) and ({twice} == 0)"
            " and ({thrown} == 0) and ({gone} == 0) and ({c} > 0), 1)",
            sum=Observed("ttft_seconds", "sum"),
            first=Start(WAITING),
            last=Over("last", WAITING),
            twice=Over("max", Expr("({w} > bool 0) * ({before} > bool 0)", w=WAITING, before=WAITED)),
            thrown=Grew("preemptions_total"),
            gone=First(Grew("aborted_requests_total"), Number(0.0)),
            c=Observed("ttft_seconds", "count"),
        ),
    ),
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
