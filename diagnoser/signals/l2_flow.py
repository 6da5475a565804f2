"""What moves between L1 and the host tier, what is lost on the way, and how fast it loads."""

from __future__ import annotations

from collections.abc import Mapping

from diagnoser.signals.base import Params, Signal
from diagnoser.signals.promql import Ask, Cannot, Expr, First, Gauge, Grew
from diagnoser.signals.tierpages import tier_grew, tier_rate, tier_ratio
from diagnoser.signals.view import Found, Missing, Result, View


def _bandwidth(view: View, _: Params) -> Result:
    """Bytes by seconds; where a tier measures the speed of each load instead, the mean of those."""
    nothing = "nothing was loaded in this window"
    speeds = tier_ratio(view, "load_speeds_sum_total", "load_speeds_total", nothing)
    return speeds if isinstance(speeds, Found) else tier_ratio(view, "load_bytes_total", "load_seconds_total", nothing)


def _lagged(view: View, _: Params) -> Result:
    """Of what left L1 in the window and should have been copied, the share that was not in time."""
    lagged, stored = tier_grew(view, "lagged_total"), tier_grew(view, "stored_total")
    if isinstance(lagged, Missing):
        return lagged
    if isinstance(stored, Missing):
        return stored
    total = lagged.value + stored.value
    return Found(lagged.value / total, lagged.series) if total > 0 else Missing("nothing was to be copied to L2")


def _reuse_lifetimes(view: View, _: Params) -> Result:
    """How long after its eviction a chunk is wanted again, against how long the tier keeps one."""
    gap = tier_ratio(view, "evict_reuse_seconds_total", "evict_reuse_total", "nothing evicted was wanted again")
    kept = tier_ratio(view, "kept_seconds_total", "kept_total", "no sampled chunk left the tier")
    if isinstance(gap, Missing):
        return gap
    if isinstance(kept, Missing):
        return kept
    return Found(gap.value / kept.value, gap.series + kept.series) if kept.value > 0 else Missing("kept for no time")


def _grew(counter: str) -> Ask:
    """A counter that is born with its first event is 0 before it, where there is a tier of a release that has it."""
    grew, there = Grew(counter), _BORN_LATE.get(counter)
    return grew if there is None else First(grew, Expr("({there} * 0) unless {grew}", there=there, grew=grew))


_TIER = First(Expr("({c} > 0)", c=Gauge("l2_capacity")), Gauge("l2_marker"))
_COUNTS_DROPS = Expr("{tier} and {known}", tier=_TIER, known=Gauge("l2_counts_drops"))
_BORN_LATE: Mapping[str, Ask] = {
    "l2_loaded_total": _TIER,
    "l2_stored_total": _TIER,
    "l2_dropped_total": _COUNTS_DROPS,
    "l2_lagged_total": _COUNTS_DROPS,
}


def _moved(name: str, unit: str, meaning: str, counter: str) -> Signal:
    promql = Expr("{g} / {window_seconds}", g=_grew(f"l2_{counter}"))
    return Signal(name, unit, meaning, lambda view, _: tier_rate(view, counter), promql=promql)


def _mean(name: str, unit: str, meaning: str, over: str, under: str, nothing: str) -> Signal:
    promql = Expr("{a} / ({b} > 0) and {tier}", a=Grew(f"l2_{over}"), b=Grew(f"l2_{under}"), tier=_TIER)
    return Signal(name, unit, meaning, lambda view, _: tier_ratio(view, over, under, nothing), promql=promql)


SIGNALS = (
    _moved("l2_stored_rate", "units/s", "moved from L1 into the tier a second", "stored_total"),
    _moved("l2_loaded_rate", "units/s", "moved from the tier back into L1 a second", "loaded_total"),
    _moved("l2_evicted_rate", "units/s", "thrown out of the tier a second", "evicted_total"),
    _moved("l2_dropped_rate", "units/s", "stores refused for lack of room a second", "dropped_total"),
    _moved("l2_errors_rate", "1/s", "failed transfers a second", "errors_total"),
    _moved("l2_refused_by_l1_rate", "units/s", "loads from storage refused: no room in L1", "l1_refused_total"),
    _moved("l2_slow_loads_rate", "1/s", "loads that the tier itself calls slow", "slow_loads_total"),
    _moved("l2_load_busy_mean_ratio", "ratio", "seconds of loading a second", "load_seconds_total"),
    Signal(
        "l2_lagged_ratio",
        "ratio",
        "of what left L1, the share not yet copied to L2",
        _lagged,
        promql=Expr("{l} / (({l} + {s}) > 0)", l=_grew("l2_lagged_total"), s=_grew("l2_stored_total")),
    ),
    _mean(
        "l2_hit_ratio",
        "ratio",
        "tokens found in L2 of those looked up there",
        "hit_tokens_total",
        "query_tokens_total",
        "nothing was looked up in L2 in this window",
    ),
    Signal(
        "l2_load_bandwidth",
        "bytes/s",
        "bytes loaded a second of loading",
        _bandwidth,
        promql=Expr("{b} / ({s} > 0)", b=Grew("l2_load_bytes_total"), s=Grew("l2_load_seconds_total")),
    ),
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
    Signal(
        "l2_evict_reuse_lifetimes",
        "lifetimes",
        "that time against how long the tier keeps one",
        _reuse_lifetimes,
        promql=Cannot("only LMCache tells it, on a page of its own"),
    ),
)
