"""The host tier over the window: how full where that can be seen, how much moves, and whether the
copy is what is waited for.
"""

from __future__ import annotations

from diagnoser.model import Reading, TierState
from diagnoser.signals.base import IntervalSignal, Params, Signal
from diagnoser.signals.requests import deferred
from diagnoser.signals.view import Found, Missing, Result, View, grown


def _ends(view: View) -> tuple[TierState, TierState] | None:
    seen = [s.l2 for s in view.snapshots if s.l2 is not None and s.l2.presence]
    return (seen[0], seen[-1]) if seen else None


def _no_tier(view: View) -> Missing:
    last = view.snapshots[-1].l2 if view.snapshots else None
    return Missing(last.reason if last is not None and last.reason else "no host tier on this page")


def _present(view: View, _: Params) -> Result:
    last = view.snapshots[-1].l2 if view.snapshots else None
    return _no_tier(view) if last is None or last.presence is None else Found(float(last.presence))


def _resident(view: View, upper: bool) -> Result:
    ends = _ends(view)
    if ends is None:
        return _no_tier(view)
    held = ends[1].resident_upper if upper else ends[1].resident
    if held is None or not ends[1].capacity:
        return Missing(ends[1].reason or "this tier does not export how full it is")
    return Found(held / ends[1].capacity)


def _rate(view: View, counter: str) -> Result:
    ends, seconds = _ends(view), view.seconds
    if ends is None:
        return _no_tier(view)
    after = ends[1].counters.get(counter)
    if after is None or seconds <= 0:
        return Missing(f"this tier does not export {counter}" if after is None else "needs two pages")
    before = ends[0].counters.get(counter, Reading(0.0, ""))
    return Found(grown(before.value, after.value) / seconds, (after.series,))


def _hit_ratio(view: View, _: Params) -> Result:
    hits, queries = _rate(view, "hit_tokens_total"), _rate(view, "query_tokens_total")
    if isinstance(hits, Missing):
        return hits
    if isinstance(queries, Missing):
        return queries
    if queries.value <= 0:
        return Missing("nothing was looked up in L2 in this window")
    return Found(hits.value / queries.value, hits.series + queries.series)


def _load_busy(view: View, i: int) -> float | None:
    a, b = view.pair(i)
    if a.l2 is None or b.l2 is None or "load_seconds_total" not in b.l2.counters:
        return None
    before = a.l2.counters.get("load_seconds_total", Reading(0.0, ""))
    return grown(before.value, b.l2.counters["load_seconds_total"].value) / (b.at - a.at)


def _load_busy_window(view: View, _: Params) -> Result:
    return _rate(view, "load_seconds_total")


def _fetch_done(view: View, i: int) -> float | None:
    """0 where the stages of a load are not exported: then nothing shows that a load is done."""
    end = next((s for s in reversed(view.pair(i)) if deferred(s) > 0), None)
    return 0.0 if end is None else (end.value("kv_fetch_done_requests") or 0.0) / deferred(end)


SIGNALS = (
    Signal("l2_present", "bool", "there is a host tier", _present),
    Signal("l2_resident_ratio", "ratio", "share of the host tier that is filled", lambda v, _: _resident(v, False)),
    Signal(
        "l2_resident_upper_ratio",
        "ratio",
        "most that can be filled, by all that was ever stored",
        lambda v, _: _resident(v, True),
    ),
    Signal("l2_stored_rate", "units/s", "moved from L1 into the tier a second", lambda v, _: _rate(v, "stored_total")),
    Signal(
        "l2_loaded_rate", "units/s", "moved from the tier back into L1 a second", lambda v, _: _rate(v, "loaded_total")
    ),
    Signal("l2_evicted_rate", "units/s", "thrown out of the tier a second", lambda v, _: _rate(v, "evicted_total")),
    Signal(
        "l2_dropped_rate", "units/s", "stores refused for lack of room a second", lambda v, _: _rate(v, "dropped_total")
    ),
    Signal("l2_errors_rate", "1/s", "failed transfers a second", lambda v, _: _rate(v, "errors_total")),
    Signal("l2_hit_ratio", "ratio", "tokens found in L2 of those looked up there", _hit_ratio),
    Signal("l2_load_busy_mean_ratio", "ratio", "seconds of loading a second", _load_busy_window),
)
INTERVALS = (
    IntervalSignal("l2_load_busy_ratio", "ratio", "seconds of loading from L2 a second", _load_busy),
    IntervalSignal(
        "fetch_done_ratio", "ratio", "share of the deferred requests whose KV is loaded already", _fetch_done
    ),
)
