"""Why now: this window against the same process's own lifetime. Not against yesterday: that needs a metrics server."""

from __future__ import annotations

from diagnoser.signals.base import Params, Signal, scalar
from diagnoser.signals.promql import Ask, Expr, Observed, Over
from diagnoser.signals.view import Found, Missing, Result, View


def _growth(view: View, name: str, params: Params) -> Result:
    """Mean in the window against the mean of all earlier observations."""
    now, life = view.histogram(name), view.lifetime(name)
    if isinstance(now, Missing):
        return now
    if isinstance(life, Missing):
        return life
    before_count, before_sum = life.count - now.count, life.sum - now.sum
    least = scalar(params, "observations_min")
    if now.count < least or before_count < least or before_sum <= 0:
        return Missing("too few observations in the window or before it")
    return Found((now.sum / now.count) / (before_sum / before_count), (life.series,))


def _arrivals(view: View, _: Params) -> Result:
    start, life, now = view.last("process_start_seconds"), view.lifetime("ttft_seconds"), view.histogram("ttft_seconds")
    if start is None:
        return view.why_missing("process_start_seconds")
    if isinstance(life, Missing) or isinstance(now, Missing):
        return Missing("no TTFT histogram over two pages")
    before = view.snapshots[0].at - start.value
    if before <= view.seconds or life.count - now.count <= 0:
        return Missing("the process is younger than two windows")
    return Found((now.count / view.seconds) / ((life.count - now.count) / before), (life.series, start.series))


def _grown(name: str) -> Ask:
    """Against what the histogram held on the first page; a restart since then leaves nothing to compare with."""
    parts = {"s": ("sum", True), "c": ("count", True), "S": ("sum", False), "C": ("count", False)}
    asks = {key: Observed(name, part, ever=not first, before=first) for key, (part, first) in parts.items()}
    now, before = "({S} - {s}) / (({C} - {c}) >= {observations_min})", "{s} / ({c} >= {observations_min})"
    return Expr(f"({now}) / (({before}) > 0)", **asks)


SIGNALS = (
    Signal(
        "first_tokens_growth_ratio",
        "ratio",
        "rate of first tokens against the process's lifetime",
        _arrivals,
        promql=Expr(
            "(({life} - {c}) >= 0) / ({window_seconds} - {step_seconds})"
            " / ({c} / ((time() - {window_seconds} + {step_seconds} - {start}) > {window_seconds}) > 0)",
            life=Observed("ttft_seconds", "count", ever=True),
            c=Observed("ttft_seconds", "count", before=True),
            start=Over("last", "process_start_seconds"),
        ),
    ),
    Signal(
        "prompt_growth_ratio",
        "ratio",
        "mean prompt against the process's lifetime",
        lambda v, p: _growth(v, "prompt_tokens", p),
        promql=_grown("prompt_tokens"),
    ),
    Signal(
        "output_growth_ratio",
        "ratio",
        "mean output against the process's lifetime",
        lambda v, p: _growth(v, "generation_tokens", p),
        promql=_grown("generation_tokens"),
    ),
    Signal(
        "inter_token_growth_ratio",
        "ratio",
        "mean gap between tokens against the process's lifetime",
        lambda v, p: _growth(v, "inter_token_seconds", p),
        promql=_grown("inter_token_seconds"),
    ),
)
