"""The host tier over the window: how full where that can be seen, how much moves, what is lost, how fast it loads."""

from __future__ import annotations

import itertools

from diagnoser.model import TierState
from diagnoser.signals.base import IntervalSignal, Params, Signal, scalar
from diagnoser.signals.requests import deferred
from diagnoser.signals.view import Found, Missing, Result, View, grown


def _states(view: View) -> list[tuple[float, TierState]]:
    """(unix seconds, tier) of every page of the tier in the window; none if the last page does not tell."""
    seen = [(s.l2.at or s.at, s.l2) for s in view.snapshots if s.l2 is not None]
    if not seen or not seen[-1][1].presence:
        return []
    backend = seen[-1][1].backend
    return sorted({at: tier for at, tier in seen if tier.presence and tier.backend == backend}.items())


def _no_tier(view: View) -> Missing:
    last = view.snapshots[-1].l2 if view.snapshots else None
    return Missing(last.reason if last is not None and last.reason else "no page says whether there is a host tier")


def _present(view: View, _: Params) -> Result:
    last = view.snapshots[-1].l2 if view.snapshots else None
    return _no_tier(view) if last is None or last.presence is None else Found(float(last.presence))


def _governs(view: View, _: Params) -> Result:
    last = view.snapshots[-1].l2 if view.snapshots else None
    return _no_tier(view) if last is None or last.presence is None else Found(float(last.governs_admission))


# ---------------------------------------------------------------- how full


def _resident(view: View, upper: bool) -> Result:
    states = _states(view)
    if not states:
        return _no_tier(view)
    last = states[-1][1]
    held = last.resident_upper if upper else last.resident
    if held is None or not last.capacity:
        return Missing(last.reason or "this tier does not export how full it is")
    series = tuple(reading.series for name in ("resident", "capacity") if (reading := last.gauges.get(name)))
    return Found(held / last.capacity, series)


def _held(view: View, _: Params) -> Result:
    states = _states(view)
    reading = states[-1][1].gauges.get("held_ratio") if states else None
    return Missing("no host pool that requests hold") if reading is None else Found(reading.value, (reading.series,))


def _lifetime(view: View, counter: str) -> Result:
    """A counter since the process started."""
    states = _states(view)
    reading = states[-1][1].counters.get(counter) if states else None
    if reading is None:
        return Missing(f"this tier does not export {counter}") if states else _no_tier(view)
    return Found(reading.value, (reading.series,))


def _never_evicted(view: View, params: Params) -> Result:
    """1 where nothing can ever have been thrown out: by its counter, else because the tier was never full."""
    evicted = _lifetime(view, "evicted_total")
    if isinstance(evicted, Found):
        return Found(float(evicted.value == 0), evicted.series)
    resident, most = _resident(view, False), _resident(view, True)
    if isinstance(resident, Found) and resident.value < scalar(params, "l2_full"):
        return Found(1.0, resident.series)
    if isinstance(resident, Missing) and isinstance(most, Found) and most.value < 1.0:
        return Found(1.0, most.series)
    return Missing("this tier counts no evictions" if _states(view) else _no_tier(view).reason)


def _lost_nothing(view: View, params: Params) -> Result:
    """1 where nothing was ever thrown out or refused. A tier without a counter of refusals is judged by its fill."""
    refused = _lifetime(view, "dropped_total")
    if isinstance(refused, Found) and refused.value > 0:
        return Found(0.0, refused.series)
    return _never_evicted(view, params)


# ---------------------------------------------------------------- how much moves


def _grew(view: View, counter: str) -> Result:
    """Growth over the window, page by page, so that a reset in between loses only what lay before it."""
    states = _states(view)
    if not states:
        return _no_tier(view)
    after = states[-1][1].counters.get(counter)
    if after is None:
        return Missing(f"this tier does not export {counter}")
    if len(states) < 2:
        return Missing("needs two pages")
    values = [r.value if (r := tier.counters.get(counter)) is not None else 0.0 for _, tier in states]
    return Found(sum(grown(a, b) for a, b in itertools.pairwise(values)), (after.series,))


def _rate(view: View, counter: str) -> Result:
    grew = _grew(view, counter)
    if isinstance(grew, Missing):
        return grew
    states = _states(view)
    return Found(grew.value / (states[-1][0] - states[0][0]), grew.series)


def _ratio(view: View, over: str, under: str, nothing: str) -> Result:
    """Growth of one counter by that of another; where the other stood still there is no ratio (0/0 is not 0)."""
    top, bottom = _grew(view, over), _grew(view, under)
    if isinstance(top, Missing):
        return top
    if isinstance(bottom, Missing):
        return bottom
    if bottom.value <= 0:
        return Missing(nothing)
    return Found(top.value / bottom.value, top.series + bottom.series)


def _bandwidth(view: View, _: Params) -> Result:
    """Bytes by seconds; where a tier measures the speed of each load instead, the mean of those."""
    nothing = "nothing was loaded in this window"
    speeds = _ratio(view, "load_speeds_sum_total", "load_speeds_total", nothing)
    return speeds if isinstance(speeds, Found) else _ratio(view, "load_bytes_total", "load_seconds_total", nothing)


def _lagged(view: View, _: Params) -> Result:
    """Of what left L1 in the window and should have been copied, the share that was not in time."""
    lagged, stored = _grew(view, "lagged_total"), _grew(view, "stored_total")
    if isinstance(lagged, Missing):
        return lagged
    if isinstance(stored, Missing):
        return stored
    total = lagged.value + stored.value
    return Found(lagged.value / total, lagged.series) if total > 0 else Missing("nothing was to be copied to L2")


def _reuse_lifetimes(view: View, _: Params) -> Result:
    """How long after its eviction a chunk is wanted again, against how long the tier keeps one."""
    gap = _ratio(view, "evict_reuse_seconds_total", "evict_reuse_total", "nothing evicted was wanted again")
    kept = _ratio(view, "kept_seconds_total", "kept_total", "no sampled chunk left the tier")
    if isinstance(gap, Missing):
        return gap
    if isinstance(kept, Missing):
        return kept
    return Found(gap.value / kept.value, gap.series + kept.series) if kept.value > 0 else Missing("kept for no time")


# ---------------------------------------------------------------- the copy, by interval


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


def _moved(name: str, unit: str, meaning: str, counter: str) -> Signal:
    return Signal(name, unit, meaning, lambda view, _: _rate(view, counter))


def _mean(name: str, unit: str, meaning: str, over: str, under: str, nothing: str) -> Signal:
    return Signal(name, unit, meaning, lambda view, _: _ratio(view, over, under, nothing))


SIGNALS = (
    Signal("l2_present", "bool", "there is a host tier", _present),
    Signal("l2_governs_admission", "bool", "the host pool is the KV pool (HiSparse)", _governs),
    Signal("l2_resident_ratio", "ratio", "share of the host tier that is filled", lambda v, _: _resident(v, False)),
    Signal(
        "l2_resident_upper_ratio",
        "ratio",
        "most that can be filled, by all that was ever stored",
        lambda v, _: _resident(v, True),
    ),
    Signal("l2_held_ratio", "ratio", "HiSparse: share of the host pool that requests hold", _held),
    Signal("l2_never_evicted", "bool", "nothing can ever have been thrown out of the tier", _never_evicted),
    Signal("l2_lost_nothing", "bool", "nothing was ever thrown out of the tier or refused", _lost_nothing),
    Signal("l2_evicted_ever", "units", "thrown out since the start", lambda v, _: _lifetime(v, "evicted_total")),
    _moved("l2_stored_rate", "units/s", "moved from L1 into the tier a second", "stored_total"),
    _moved("l2_loaded_rate", "units/s", "moved from the tier back into L1 a second", "loaded_total"),
    _moved("l2_evicted_rate", "units/s", "thrown out of the tier a second", "evicted_total"),
    _moved("l2_dropped_rate", "units/s", "stores refused for lack of room a second", "dropped_total"),
    _moved("l2_errors_rate", "1/s", "failed transfers a second", "errors_total"),
    _moved("l2_refused_by_l1_rate", "units/s", "loads from storage refused: no room in L1", "l1_refused_total"),
    _moved("l2_slow_loads_rate", "1/s", "loads that the tier itself calls slow", "slow_loads_total"),
    _moved("l2_load_busy_mean_ratio", "ratio", "seconds of loading a second", "load_seconds_total"),
    Signal("l2_lagged_ratio", "ratio", "of what left L1, the share not yet copied to L2", _lagged),
    _mean(
        "l2_hit_ratio",
        "ratio",
        "tokens found in L2 of those looked up there",
        "hit_tokens_total",
        "query_tokens_total",
        "nothing was looked up in L2 in this window",
    ),
    Signal("l2_load_bandwidth", "bytes/s", "bytes loaded a second of loading", _bandwidth),
    _mean(
        "l2_load_mean_seconds",
        "seconds",
        "mean time of one load",
        "load_seconds_total",
        "loads_total",
        "nothing was loaded in this window",
    ),
    _mean(
        "l2_evict_reuse_gap_seconds",
        "seconds",
        "mean time from a chunk's eviction to its next request",
        "evict_reuse_seconds_total",
        "evict_reuse_total",
        "nothing evicted was wanted again",
    ),
    Signal("l2_evict_reuse_lifetimes", "lifetimes", "that time against how long the tier keeps one", _reuse_lifetimes),
)
INTERVALS = (
    IntervalSignal("l2_load_busy_ratio", "ratio", "seconds of loading from L2 a second", _load_busy),
    IntervalSignal(
        "fetch_done_ratio", "ratio", "share of the deferred requests whose KV is loaded already", _fetch_done
    ),
)
