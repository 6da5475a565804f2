"""Is there a host tier, how full is it where that can be seen, and is the copy what is waited for."""

from __future__ import annotations

from diagnoser.signals.base import IntervalSignal, Params, Signal, scalar
from diagnoser.signals.promql import Cannot, Expr, First, Gauge, Label, Number, Stepped
from diagnoser.signals.requests import DEFERRED, deferred
from diagnoser.signals.tierpages import no_tier, since_start, tier_states
from diagnoser.signals.view import Found, Missing, Result, View, grown


def _present(view: View, _: Params) -> Result:
    last = view.snapshots[-1].l2 if view.snapshots else None
    return no_tier(view) if last is None or last.presence is None else Found(float(last.presence))


def _governs(view: View, _: Params) -> Result:
    last = view.snapshots[-1].l2 if view.snapshots else None
    return no_tier(view) if last is None or last.presence is None else Found(float(last.governs_admission))


def _resident(view: View, upper: bool) -> Result:
    states = tier_states(view)
    if not states:
        return no_tier(view)
    last = states[-1][1]
    held = last.resident_upper if upper else last.resident
    if held is None or not last.capacity:
        return Missing(last.reason or "this tier does not export how full it is")
    series = tuple(reading.series for name in ("resident", "capacity") if (reading := last.gauges.get(name)))
    return Found(held / last.capacity, series)


def _held(view: View, _: Params) -> Result:
    states = tier_states(view)
    reading = states[-1][1].gauges.get("held_ratio") if states else None
    return Missing("no host pool that requests hold") if reading is None else Found(reading.value, (reading.series,))


def _never_evicted(view: View, params: Params) -> Result:
    """1 where nothing can ever have been thrown out: by its counter, else because the tier was never full."""
    evicted = since_start(view, "evicted_total")
    if isinstance(evicted, Found):
        return Found(float(evicted.value == 0), evicted.series)
    resident, most = _resident(view, False), _resident(view, True)
    if isinstance(resident, Found) and resident.value < scalar(params, "l2_full"):
        return Found(1.0, resident.series)
    if isinstance(resident, Missing) and isinstance(most, Found) and most.value < 1.0:
        return Found(1.0, most.series)
    return Missing("this tier counts no evictions" if tier_states(view) else no_tier(view).reason)


def _lost_nothing(view: View, params: Params) -> Result:
    """1 where nothing was ever thrown out or refused. A tier without a counter of refusals is judged by its fill."""
    refused = since_start(view, "dropped_total")
    if isinstance(refused, Found) and refused.value > 0:
        return Found(0.0, refused.series)
    return _never_evicted(view, params)


def _load_busy(view: View, i: int) -> float | None:
    """Only of a tier of this engine alone: what a shared one loads may be for others."""
    a, b = (s.l2 for s in view.pair(i))
    if a is None or b is None or b.scope != "engine" or "load_seconds_total" not in b.counters:
        return None
    before, start, end = a.counters.get("load_seconds_total"), *(s.at for s in view.pair(i))
    return grown(0.0 if before is None else before.value, b.counters["load_seconds_total"].value) / (end - start)


def _fetch_done(view: View, i: int) -> float | None:
    """0 where the stages of a load are not exported: then nothing shows that a load is done."""
    end = next((s for s in reversed(view.pair(i)) if deferred(s) > 0), None)
    return 0.0 if end is None else (end.value("kv_fetch_done_requests") or 0.0) / deferred(end)


PRESENT = First(
    Expr("({c} > 0) * 0 + 1", c=Gauge("l2_capacity")),
    Expr("{m} * 0 + 1", m=Gauge("l2_marker")),
    Expr("{m} * 0", m=Gauge("l2_none_marker")),
    Expr("({asked} == 0) and ({p} > 0)", asked=Gauge("l2_asked_total"), p=Gauge("prompt_tokens_total")),
)
"""HiCache tells its host pool, vLLM's native tier has series of its own; a connector never asked is none."""
_CAPACITY = Expr("{gib} * 1073741824", gib=Label("kv_offloading_size"))
RESIDENT = Expr("{r} / ({c} > 0)", r=Gauge("l2_resident"), c=Gauge("l2_capacity"))
UPPER = Expr("{s} / ({c} > 0) and {m}", s=Gauge("l2_stored_total"), c=_CAPACITY, m=Gauge("l2_marker"))
SIGNALS = (
    Signal("l2_present", "bool", "there is a host tier", _present, promql=PRESENT),
    Signal(
        "l2_governs_admission",
        "bool",
        "the host pool is the KV pool (HiSparse)",
        _governs,
        promql=Expr("{p} * 0", p=PRESENT),
    ),
    Signal(
        "l2_resident_ratio",
        "ratio",
        "share of the host tier that is filled",
        lambda v, _: _resident(v, False),
        promql=RESIDENT,
    ),
    Signal(
        "l2_resident_upper_ratio",
        "ratio",
        "most that can be filled, by all that was ever stored",
        lambda v, _: _resident(v, True),
        promql=First(RESIDENT, UPPER),
    ),
    Signal(
        "l2_held_ratio",
        "ratio",
        "HiSparse: share of the host pool that requests hold",
        _held,
        promql=Cannot("HiSparse is read from pages only"),
    ),
    Signal(
        "l2_never_evicted",
        "bool",
        "nothing can ever have been thrown out of the tier",
        _never_evicted,
        promql=First(Expr("({r} < {l2_full}) * 0 + 1", r=RESIDENT), Expr("({u} < 1) * 0 + 1", u=UPPER)),
    ),
    Signal(
        "l2_lost_nothing",
        "bool",
        "nothing was ever thrown out of the tier or refused",
        _lost_nothing,
        promql=First(
            Expr("({d} > 0) * 0", d=Gauge("l2_dropped_total")),
            Expr("({r} < {l2_full}) * 0 + 1", r=RESIDENT),
            Expr("({u} < 1) * 0 + 1", u=UPPER),
        ),
    ),
    Signal(
        "l2_evicted_ever",
        "units",
        "thrown out since the start",
        lambda v, _: since_start(v, "evicted_total"),
        promql=Cannot("neither HiCache nor vLLM counts evictions of its host tier"),
    ),
)
INTERVALS = (
    IntervalSignal(
        "l2_load_busy_ratio",
        "ratio",
        "seconds of loading from L2 a second",
        _load_busy,
        promql=Expr("{s} / {step_seconds}", s=Stepped("l2_load_seconds_total")),
    ),
    IntervalSignal(
        "fetch_done_ratio",
        "ratio",
        "share of the deferred requests whose KV is loaded already",
        _fetch_done,
        promql=First(Expr("{f} / ({d} > 0)", f=Gauge("kv_fetch_done_requests"), d=DEFERRED), Number(0.0)),
    ),
)
