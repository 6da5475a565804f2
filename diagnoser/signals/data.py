"""Is there evidence at all: pages, failures, restarts, rejected series."""

from __future__ import annotations

import itertools

from diagnoser.model import NOT_IN_VERSION
from diagnoser.signals.base import Params, Signal
from diagnoser.signals.promql import Cannot, Expr, First, Lately, Number, Over, Pages, Sum, Unless
from diagnoser.signals.view import Found, Missing, Result, View, mean
from diagnoser.units import IMPOSSIBLE_RATIO


def _scrapes(view: View, _: Params) -> Result:
    return Found(float(len(view.snapshots)))


def _failures_at_end(view: View, _: Params) -> Result:
    last_page = view.snapshots[-1].at if view.snapshots else float("-inf")
    return Found(float(sum(at > last_page for at, _ in view.window.failures)))


def _failures(view: View, _: Params) -> Result:
    return Found(float(len(view.window.failures)))


def _restarts(view: View, _: Params) -> Result:
    starts = [v for _, v in view.values("process_start_seconds")]
    drops = sum(_dropped(view, name) for name in ("prompt_tokens_total", "generation_tokens_total")) > 0
    return Found(float(max(len(set(starts)) - 1, drops, 0)))


def _dropped(view: View, name: str) -> bool:
    values = [v for _, v in view.values(name)]
    return any(b < a for a, b in itertools.pairwise(values))


def _bad_series(fatal: bool, view: View) -> Result:
    bad = {(b.series, b.reason) for s in view.snapshots for b in s.bad_series if b.fatal is fatal}
    return Found(float(len(bad)), tuple(sorted(series for series, _ in bad)))


def _queue_known(view: View, _: Params) -> Result:
    cold = view.last("cold_engine")
    if cold is not None and cold.value == 1:
        return Found(1.0, (cold.series,))
    names = [n for n in ("waiting_requests", "running_requests") if view.last(n) is None]
    if not view.snapshots:
        return Missing("no page in the window")
    return Found(float(not names), tuple(names))


DECISIVE = (
    "waiting_deferred_requests",
    "preemptions_total",
    "l1_capacity_tokens",
    "new_token_ratio",
    "decode_passes_total",
    "prefill_passes_total",
    "l1_evictable_tokens",
)
"""Readings that a verdict is surer with."""


def _newer_readings(view: View, _: Params) -> Result:
    """How many decisive readings only a newer release exports; the series are the reasons, with that release."""
    if not view.snapshots:
        return Missing("no page in the window")
    reasons = [view.snapshots[-1].missing.get(name, "") for name in DECISIVE]
    lacking = dict.fromkeys(reason for reason in reasons if reason.startswith(NOT_IN_VERSION))
    return Found(float(len(lacking)), tuple(lacking))


def _last_page_age(view: View, _: Params) -> Result:
    if not view.snapshots:
        return Missing("no page in the window")
    return Found(max(0.0, view.window.end - view.snapshots[-1].at))


def _window_gap(view: View, _: Params) -> Result:
    if len(view.snapshots) < 2:
        return Missing("needs two pages")
    return Found(max(b.at - a.at for a, b in view.pairs()))


def _interval(view: View, _: Params) -> Result:
    if len(view.snapshots) < 2:
        return Missing("needs two pages")
    return Found(mean([b.at - a.at for a, b in view.pairs()]))


RESETS = First(
    Expr("{p} + {g}", p=Lately("resets", "prompt_tokens_total"), g=Lately("resets", "generation_tokens_total")),
    Lately("resets", "prompt_tokens_total"),
)
IMPOSSIBLE = Sum(
    Expr("({r} < bool 0) + ({l} != bool {l})", r=Over("min", "running_requests"), l=Over("last", "running_requests")),
    Expr("({w} < bool 0) + ({l} != bool {l})", w=Over("min", "waiting_requests"), l=Over("last", "waiting_requests")),
    Expr(
        f"({{low}} < bool 0) + ({{high}} > bool {IMPOSSIBLE_RATIO}) + ({{l}} != bool {{l}})",
        low=Over("min", "l1_used_ratio"),
        high=Over("max", "l1_used_ratio"),
        l=Over("last", "l1_used_ratio"),
    ),
)
SIGNALS = (
    Signal("scrapes", "pages", "pages read inside the window", _scrapes, promql=Pages("count")),
    Signal("failed_scrapes", "polls", "polls inside the window that gave no page", _failures, promql=Pages("failed")),
    Signal(
        "failed_scrapes_at_end",
        "polls",
        "polls since the last page that gave none",
        _failures_at_end,
        promql=Pages("failed_at_end"),
    ),
    Signal(
        "restarts",
        "restarts",
        "times the process started anew inside the window",
        _restarts,
        promql=First(
            Expr(
                "(({high} > {low}) * 0 + 1) or ({r} > bool 0)",
                high=Over("max", "process_start_seconds"),
                low=Over("min", "process_start_seconds"),
                r=RESETS,
            ),
            Expr("{r} > bool 0", r=RESETS),
        ),
    ),
    Signal(
        "fatal_series",
        "series",
        "series that are impossible and that the verdict would rest on",
        lambda view, _: _bad_series(True, view),
        promql=IMPOSSIBLE,
    ),
    Signal(
        "invalid_series",
        "series",
        "series rejected as evidence: duplicated by pid, or a broken identity",
        lambda view, _: _bad_series(False, view),
        promql=Cannot("a query joins the copies of a series and cannot tell that they differ"),
    ),
    Signal(
        "queue_metrics_present",
        "bool",
        "the pages tell how many requests run and wait",
        _queue_known,
        promql=First(
            Expr("({r} * 0 + 1) and {w}", r=Over("last", "running_requests"), w=Over("last", "waiting_requests")),
            Unless(
                "born_late",
                on=Expr(
                    "({zero} + 1) unless {u}",
                    zero=Number(0.0),
                    u=First(
                        *(
                            Over("last", n)
                            for n in ("running_requests", "waiting_requests", "l1_used_ratio", "l1_used_tokens")
                        )
                    ),
                ),
                off=Cannot(""),
            ),
            Number(0.0),
        ),
    ),
    Signal(
        "newer_readings",
        "readings",
        "decisive readings that only a newer release exports",
        _newer_readings,
        promql=Cannot("no page carries its release, and a query compares no lists of names"),
    ),
    Signal(
        "last_page_age_seconds",
        "seconds",
        "age of the newest page at the window's end",
        _last_page_age,
        promql=Pages("age"),
    ),
    Signal(
        "scrape_gap_seconds",
        "seconds",
        "longest time without a page inside the window",
        _window_gap,
        promql=Cannot("PromQL has no distance between samples"),
    ),
    Signal(
        "scrape_interval_seconds",
        "seconds",
        "mean time between two pages",
        _interval,
        promql=Expr("{window_seconds} / ({n} > 1)", n=Pages("count")),
    ),
)
