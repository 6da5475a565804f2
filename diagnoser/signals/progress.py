"""Does the engine move, and how much of its work is prefill."""

from __future__ import annotations

from diagnoser.model import Snapshot
from diagnoser.signals.base import IntervalSignal, Params, Signal
from diagnoser.signals.promql import (
    Expr,
    First,
    Gauge,
    Grew,
    Lately,
    MaxLately,
    Number,
    Observed,
    Over,
    Quiet,
    Stepped,
    Told,
    known,
    mean_of,
)
from diagnoser.signals.requests import BUSY, busy
from diagnoser.signals.view import Found, Missing, Result, View, grown, grown_between

STEP_COUNTERS = (
    "prompt_tokens_total",
    "generation_tokens_total",
    "decode_tokens_total",
    "prefill_compute_tokens_total",
    "decode_passes_total",
    "prefill_passes_total",
)
EVERY_STEP = ("decode_passes_total", "decode_tokens_total")
"""Counters that move with every engine step, as does the histogram iteration_tokens.

Without one a quiet interval proves nothing.
"""


def _moved(a: Snapshot, b: Snapshot) -> bool:
    counters = any(_grew(a.value(n), b.value(n)) for n in (*STEP_COUNTERS, "finished_requests_total"))
    return counters or any(_grew(_count(a, n), _count(b, n)) for n in ("iteration_tokens", "ttft_seconds"))


def _loaded(a: Snapshot, b: Snapshot) -> bool:
    """Did the copy from L2 move?"""
    counters = [s.l2.counters.get("loaded_total") if s.l2 and s.l2.scope == "engine" else None for s in (a, b)]
    before, after = (c.value if c is not None else None for c in counters)
    return _grew(before, after)


def _grew(before: float | None, after: float | None) -> bool:
    return after is not None and (before is None or after != before)


def _count(snapshot: Snapshot, name: str) -> float | None:
    histogram = snapshot.histograms.get(name)
    return None if histogram is None else histogram.count


def _counts_steps(snapshot: Snapshot) -> bool:
    return "iteration_tokens" in snapshot.histograms or any(name in snapshot.readings for name in EVERY_STEP)


GAUGES = (
    "running_requests",
    "waiting_requests",
    "l1_used_tokens",
    "l1_used_ratio",
    "l1_evictable_tokens",
    "l1_available_tokens",
)


def _same_page(a: Snapshot, b: Snapshot) -> bool:
    return not _moved(a, b) and all(a.value(name) == b.value(name) for name in GAUGES)


def _stretches(view: View, frozen: bool) -> list[float]:
    """For each interval the length of the unbroken run of intervals without progress it belongs to; 0
    where all moves.
    """
    still = [(_same_page(a, b) if frozen else not _moved(a, b)) for a, b in view.pairs()]
    loads = [_loaded(a, b) for a, b in view.pairs()]
    return _runs(view, [s and not x and busy(b) for s, x, (_, b) in zip(still, loads, view.pairs(), strict=True)])


def _runs(view: View, still: list[bool]) -> list[float]:
    """Length in seconds of the run of true entries that each interval belongs to; 0 where it is false."""
    pairs = list(view.pairs())
    out, start = [0.0] * len(pairs), 0
    for i, quiet in enumerate([*still, False]):
        if quiet:
            continue
        if i > start:
            out[start:i] = [pairs[i - 1][1].at - pairs[start][0].at] * (i - start)
        start = i + 1
    return out


def _stretch(view: View, i: int, frozen: bool) -> float:
    key = f"stretches, frozen {frozen}"
    if key not in view.memo:
        view.memo[key] = _stretches(view, frozen)
    return float(view.memo[key][i])


def _no_progress(view: View, i: int) -> float | None:
    return _stretch(view, i, frozen=False) if _counts_steps(view.snapshots[i + 1]) else None


def _frozen_page(view: View, i: int) -> float | None:
    return _stretch(view, i, frozen=True)


def _only_loads_move(view: View, i: int) -> float | None:
    a, b = view.pair(i)
    return None if b.l2 is None else float(_loaded(a, b) and not _moved(a, b))


def _loop_stopped(view: View, i: int) -> float | None:
    """Like _no_progress, by the scheduler's own clock: it runs busy or idle, so it also shows a hang that no request
    does.

    Tokens that flow beside a clock that stands prove the clock wrong. 0 where there is no such clock: it shows nothing.
    """
    if "loop" not in view.memo:
        still = [grown_between(a, b, "scheduler_loop_seconds_total") == 0 and not _moved(a, b) for a, b in view.pairs()]
        view.memo["loop"] = _runs(view, still)
    return float(view.memo["loop"][i])


def _prefill_pass_ratio(view: View, i: int) -> float | None:
    a, b = view.pair(i)
    prefill, decode = grown_between(a, b, "prefill_passes_total"), grown_between(a, b, "decode_passes_total")
    if prefill is None or decode is None:
        return None
    return prefill / (prefill + decode) if prefill + decode > 0 else 0.0


def _step_tokens(a: Snapshot, b: Snapshot) -> float | None:
    x, y = a.histograms.get("iteration_tokens"), b.histograms.get("iteration_tokens")
    if x is None or y is None:
        return None
    steps = grown(x.count, y.count)
    return grown(x.sum, y.sum) / steps if steps > 0 else 0.0


def _budget_used(view: View, i: int) -> float | None:
    budget, tokens = view.number("max_num_batched_tokens"), _step_tokens(*view.pair(i))
    return None if not budget or tokens is None else tokens / budget


# ---------------------------------------------------------------- over the window


def _tokens_per_step(view: View, _: Params) -> Result:
    histogram = view.histogram("iteration_tokens")
    if isinstance(histogram, Missing):
        return histogram
    if histogram.count <= 0:
        return Missing("no engine step in the window")
    return Found(histogram.sum / histogram.count, (histogram.series,))


def _prefill_occupancy(view: View, _: Params) -> Result:
    histogram = view.histogram("prefill_seconds")
    if isinstance(histogram, Missing):
        return histogram
    return Found(histogram.sum / view.seconds, (histogram.series,))


def _window_pass_ratio(view: View, _: Params) -> Result:
    prefill, decode = view.increase("prefill_passes_total"), view.increase("decode_passes_total")
    if isinstance(prefill, Missing):
        return prefill
    if isinstance(decode, Missing):
        return decode
    total = prefill.value + decode.value
    return Found(prefill.value / total if total else 0.0, prefill.series)


def _idle_used(view: View, _: Params) -> Result:
    """How long the newest stretch lasts in which nobody runs or waits and yet the same tokens stay held."""
    held, reading = _held(view.snapshots[-1]) if view.snapshots else None, view.last("l1_used_tokens")
    if held is None:
        return view.why_missing("l1_used_tokens")
    since = view.snapshots[-1].at
    for snapshot in reversed(view.snapshots):
        if busy(snapshot) or _held(snapshot) != held:
            break
        since = snapshot.at
    idle = 0.0 if held <= 0 or busy(view.snapshots[-1]) else view.snapshots[-1].at - since
    return Found(idle, (reading.series,) if reading else ())


def _held(snapshot: Snapshot) -> float | None:
    used = snapshot.value("l1_used_tokens")
    if used is None:
        used = snapshot.value("l1_used_ratio")
    return None if used is None else used - (snapshot.value("session_held_tokens") or 0.0)


STEP_NAMES = (*STEP_COUNTERS, "finished_requests_total", "iteration_tokens", "ttft_seconds")
HELD = First(Gauge("l1_used_tokens"), Gauge("l1_used_ratio"))
SIGNALS = (
    Signal(
        "prompt_tokens_rate",
        "tokens/s",
        "prompt tokens a second",
        lambda v, _: v.rate("prompt_tokens_total"),
        promql=Expr("{g} / {window_seconds}", g=Grew("prompt_tokens_total")),
    ),
    Signal(
        "generation_tokens_rate",
        "tokens/s",
        "generated tokens a second",
        lambda v, _: v.rate("generation_tokens_total"),
        promql=Expr("{g} / {window_seconds}", g=Grew("generation_tokens_total")),
    ),
    Signal(
        "tokens_per_step",
        "tokens",
        "prompt and output tokens of one engine step",
        _tokens_per_step,
        promql=mean_of("iteration_tokens"),
    ),
    Signal(
        "prefill_occupancy_requests",
        "requests",
        "requests that are in prefill at any moment (Little: prefill seconds a second, of those that finished)",
        _prefill_occupancy,
        promql=Expr("{s} / {window_seconds}", s=Observed("prefill_seconds", "sum")),
    ),
    Signal(
        "prefill_passes_known",
        "bool",
        "passes that prefill are counted apart from those that decode",
        lambda v, _: Found(float(v.last("prefill_passes_total") is not None)),
        promql=known(Over("last", "prefill_passes_total")),
    ),
    Signal(
        "step_budget_known",
        "bool",
        "the token budget of a step is known",
        lambda v, _: Found(float(v.number("max_num_batched_tokens") is not None)),
        promql=First(Expr("{b} * 0 + 1", b=Told("max_num_batched_tokens")), Number(0.0)),
    ),
    Signal(
        "prefill_pass_ratio_window",
        "ratio",
        "share of forward passes that prefill",
        _window_pass_ratio,
        promql=Expr(
            "{p} / (({p} + {d}) > 0) or ({p} * 0)", p=Grew("prefill_passes_total"), d=Grew("decode_passes_total")
        ),
    ),
    Signal(
        "idle_used_seconds",
        "seconds",
        "time that tokens stay held although nobody runs or waits",
        _idle_used,
        promql=Expr(
            "({busy} == bool 0) * ({moved} == bool 0) * ({held} > bool 0) * {idle_used_seconds_max}",
            busy=MaxLately(BUSY, "idle_used_seconds_max"),
            moved=First(
                Lately("changes", "l1_used_tokens", "idle_used_seconds_max"),
                Lately("changes", "l1_used_ratio", "idle_used_seconds_max"),
            ),
            held=HELD,
        ),
    ),
    Signal(
        "engine_awake",
        "bool",
        "the engine is not asleep",
        lambda v, _: v.gauge("engine_awake", lambda x: x[-1]),
        promql=Over("last", "engine_awake"),
    ),
)
INTERVALS = (
    IntervalSignal(
        "only_loads_move",
        "bool",
        "the copy from L2 moves and nothing else does",
        _only_loads_move,
        promql=Expr(
            "({quiet} == 1) * ({still} == bool 0) or ({any} * 0)",
            quiet=Quiet("", *STEP_NAMES),
            still=Quiet("", "l2_loaded_total"),
            any=Gauge("l2_loaded_total"),
        ),
    ),
    IntervalSignal(
        "no_progress_seconds",
        "seconds",
        "time without any token or step although somebody runs or waits",
        _no_progress,
        promql=Expr(
            "{quiet} * ({busy} > bool 0) * {stalled_seconds} and {counts}",
            quiet=Quiet("stalled_seconds", *STEP_NAMES, "l2_loaded_total"),
            busy=BUSY,
            counts=First(Gauge("decode_tokens_total"), Gauge("decode_passes_total")),
        ),
    ),
    IntervalSignal(
        "loop_stopped_seconds",
        "seconds",
        "time in which the scheduler's loop did not turn",
        _loop_stopped,
        promql=First(
            Expr(
                "{clock} * {quiet} * {stalled_seconds}",
                clock=Quiet("stalled_seconds", "scheduler_loop_seconds_total"),
                quiet=Quiet("stalled_seconds", *STEP_NAMES),
            ),
            Number(0.0),
        ),
    ),
    IntervalSignal(
        "frozen_page_seconds",
        "seconds",
        "time in which no counter and no gauge changed although somebody runs or waits",
        _frozen_page,
        promql=Expr(
            "{quiet} * ({busy} > bool 0) * {frozen_page_seconds}",
            quiet=Quiet("frozen_page_seconds", *STEP_NAMES, *GAUGES),
            busy=BUSY,
        ),
    ),
    IntervalSignal(
        "prefill_pass_ratio",
        "ratio",
        "share of forward passes that prefill",
        _prefill_pass_ratio,
        promql=Expr(
            "{p} / (({p} + {d}) > 0) or ({p} * 0)", p=Stepped("prefill_passes_total"), d=Stepped("decode_passes_total")
        ),
    ),
    IntervalSignal(
        "step_budget_used_ratio",
        "ratio",
        "tokens a step against the token budget of a step",
        _budget_used,
        promql=Expr(
            "{s} / ({c} > 0) / {b}",
            s=Stepped("iteration_tokens_sum"),
            c=Stepped("iteration_tokens_count"),
            b=Told("max_num_batched_tokens"),
        ),
    ),
)
