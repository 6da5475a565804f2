"""TTFT by cause: queue, L2 load, prefill, thrown out before the first token, rest. Means add up, percentiles do not.

vLLM observes queue, prefill, decode and end-to-end time together when a request finishes, so their means are of the
same requests: end-to-end less decode is the TTFT of those who finished, observed one decode time after it. SGLang
observes the queue at the first forward and TTFT at the first token, nearly the same moment, and has no time of a whole
prefill.
"""

from __future__ import annotations

from diagnoser.signals.base import Params, Signal, scalar
from diagnoser.signals.promql import Ask, Expr, First, Grew, Number, Observed, Of, Over, Unless, mean_of
from diagnoser.signals.view import Found, Missing, Result, View, mean

AT_FINISH = ("e2e_seconds", "decode_seconds", "queue_seconds", "prefill_seconds")


def _whole(view: View, params: Params) -> Result:
    """Mean TTFT of the requests that the parts are of."""
    if not _at_finish(view):
        return _of_first_tokens(view, params)
    e2e, decode = view.observed_mean("e2e_seconds"), view.observed_mean("decode_seconds")
    if isinstance(e2e, Missing):
        return Missing("nobody finished in this window, and queue and prefill time are observed at the finish")
    if isinstance(decode, Missing):
        return decode
    if e2e.value <= decode.value:
        return Missing("end-to-end time is not longer than decode time: not the same requests")
    return Found(e2e.value - decode.value, e2e.series + decode.series)


def _of_first_tokens(view: View, params: Params) -> Result:
    """TTFT itself, if about as many requests show a queue time: else they are not the same ones."""
    counts = [h.count for n in ("queue_seconds", "ttft_seconds") if not isinstance(h := view.histogram(n), Missing)]
    if len(counts) == 2 and min(counts) < scalar(params, "counts_agree_min") * max(counts):
        return Missing(f"{counts[0]:g} requests show a queue time, {counts[1]:g} a first token: not the same ones")
    return view.observed_mean("ttft_seconds")


def _age(view: View, _: Params) -> Result:
    """How long before they were observed the first tokens of those requests came."""
    if not _at_finish(view):
        return Found(0.0)
    return view.observed_mean("decode_seconds")


def _count(view: View, _: Params) -> Result:
    histogram = view.histogram("e2e_seconds" if _at_finish(view) else "ttft_seconds")
    return histogram if isinstance(histogram, Missing) else Found(histogram.count, (histogram.series,))


def _at_finish(view: View) -> bool:
    """Does the engine observe all of them, so at the finish?"""
    return all(name in s.histograms for s in view.snapshots[-1:] for name in AT_FINISH)


def _share(view: View, part: str, params: Params) -> Result:
    of, whole = view.observed_mean(part), _whole(view, params)
    if isinstance(of, Missing):
        return of
    if isinstance(whole, Missing):
        return whole
    if whole.value <= 0:
        return Found(0.0, of.series + whole.series)
    if of.value > whole.value * (1 + scalar(params, "ttft_parts_slack")):
        return Missing("the part is longer than the whole: not the same requests")
    return Found(min(1.0, of.value / whole.value), of.series + whole.series)


def _rest(view: View, params: Params) -> Result:
    queue, prefill = _share(view, "queue_seconds", params), _share(view, "prefill_seconds", params)
    if isinstance(queue, Missing):
        return queue
    if isinstance(prefill, Missing):
        return prefill
    return Found(max(0.0, 1.0 - queue.value - prefill.value), queue.series + prefill.series)


# ---------------------------------------------------------------- inside the parts


def _load(view: View, _: Params) -> Result:
    """Mean wait for a load from L2, of every first token: requests in that stage by first tokens a second (Little).

    Only loads in progress: whose load has not begun or is done waits for KV space or a slot, as others do.
    """
    tier = next((s.l2 for s in reversed(view.snapshots) if s.l2 is not None), None)
    if tier is not None and tier.presence is False:
        return Found(0.0)
    counted = [value for _, value in view.values("kv_fetch_in_progress_requests")]
    last = view.last("kv_fetch_in_progress_requests")
    if not counted:
        return Missing("this version does not count the requests that wait for a load (vLLM 0.32)")
    if not any(counted):
        return Found(0.0, (last.series,) if last else ())
    first = view.histogram("ttft_seconds")
    if isinstance(first, Missing):
        return first
    if first.count <= 0:
        return Missing("nobody got a first token in this window")
    return Found(mean(counted) * view.seconds / first.count, (last.series if last else "", first.series))


def _load_share(view: View, params: Params) -> Result:
    load, whole, queue = _load(view, params), _whole(view, params), _share(view, "queue_seconds", params)
    for part in (load, whole, queue):
        if isinstance(part, Missing):
            return part
    assert isinstance(load, Found) and isinstance(whole, Found) and isinstance(queue, Found)
    share = load.value / whole.value if whole.value > 0 else 0.0
    return Found(min(share, queue.value), load.series + whole.series)


def _redo(view: View, _: Params) -> Result:
    """Nobody was thrown out, so nobody before the first token. Else it is not exported who had one already."""
    thrown = view.increase("preemptions_total")
    if isinstance(thrown, Missing):
        return thrown
    if thrown.value == 0:
        return Found(0.0, thrown.series)
    return Missing(f"{thrown.value:g} were thrown out; how many had no first token yet is not exported")


WHOLE = Unless(
    "queue_time_at_admission",
    on=Expr(
        "{mean} and ({q} >= {counts_agree_min} * {t}) and ({t} >= {counts_agree_min} * {q})",
        mean=mean_of("ttft_seconds"),
        q=Observed("queue_seconds", "count"),
        t=Observed("ttft_seconds", "count"),
    ),
    off=Expr("({e} - {d}) > 0", e=mean_of("e2e_seconds"), d=mean_of("decode_seconds")),
)


def _part(name: str) -> Ask:
    return Expr(
        "clamp_max({part} / ({whole} > 0), 1) and ({part} <= {whole} * (1 + {ttft_parts_slack}))",
        part=mean_of(name),
        whole=WHOLE,
    )


SIGNALS = (
    Signal("ttft_of_parts_seconds", "seconds", "mean TTFT of the requests that the parts are of", _whole, promql=WHOLE),
    Signal(
        "ttft_parts_requests",
        "requests",
        "how many requests the parts are of",
        _count,
        promql=Unless(
            "queue_time_at_admission", on=Observed("ttft_seconds", "count"), off=Observed("e2e_seconds", "count")
        ),
    ),
    Signal(
        "ttft_parts_age_seconds",
        "seconds",
        "mean time between their first token and its observation",
        _age,
        promql=Unless("queue_time_at_admission", on=Number(0.0), off=mean_of("decode_seconds")),
    ),
    Signal(
        "queue_share_ratio",
        "ratio",
        "mean queue time against mean TTFT",
        lambda v, p: _share(v, "queue_seconds", p),
        promql=_part("queue_seconds"),
    ),
    Signal(
        "prefill_share_ratio",
        "ratio",
        "mean prefill time against mean TTFT",
        lambda v, p: _share(v, "prefill_seconds", p),
        promql=_part("prefill_seconds"),
    ),
    Signal(
        "rest_share_ratio",
        "ratio",
        "TTFT that is neither queue nor prefill: front end, tokenizer, network",
        _rest,
        promql=Expr("clamp_min(1 - {q} - {p}, 0)", q=_part("queue_seconds"), p=_part("prefill_seconds")),
    ),
    Signal(
        "ttft_load_seconds",
        "seconds",
        "mean wait for a load from L2, estimated (Little)",
        _load,
        promql=First(
            Expr("{tier} == 0", tier=Of("l2_present")),
            Expr(
                "{n} * {window_seconds} / ({c} > 0) or ({n} == 0)",
                n=Over("avg", "kv_fetch_in_progress_requests"),
                c=Observed("ttft_seconds", "count"),
            ),
        ),
    ),
    Signal(
        "ttft_load_share_ratio",
        "ratio",
        "that wait against mean TTFT; it lies inside the queue time",
        _load_share,
        promql=Expr("{l} / ({w} > 0) and {q}", l=Of("ttft_load_seconds"), w=WHOLE, q=Of("queue_share_ratio")),
    ),
    Signal(
        "ttft_redo_seconds",
        "seconds",
        "lost to being thrown out before the first token",
        _redo,
        promql=Expr("{p} == 0", p=Grew("preemptions_total")),
    ),
)
