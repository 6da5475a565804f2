"""Running requests thrown out (vLLM preemption, SGLang retraction) and what it costs."""

from __future__ import annotations

from diagnoser.signals.base import Params, Signal
from diagnoser.signals.promql import Expr, Grew, Over, Total
from diagnoser.signals.view import Found, Missing, Result, View


def _per_completion(view: View, _: Params) -> Result:
    thrown, finished = view.increase("preemptions_total"), view.increase("finished_requests_total")
    if isinstance(thrown, Missing):
        return thrown
    if isinstance(finished, Missing):
        return finished
    return Found(thrown.value / max(1.0, finished.value), thrown.series + finished.series)


def _recompute(view: View, _: Params) -> Result:
    done, first = view.rate("prefill_compute_tokens_total"), view.rate("prefill_effective_tokens_total")
    if isinstance(done, Missing):
        return done
    if isinstance(first, Missing):
        return first
    return Found(max(0.0, done.value - first.value), done.series + first.series)


SIGNALS = (
    Signal(
        "preemptions",
        "requests",
        "running requests thrown out in the window",
        lambda v, _: v.increase("preemptions_total"),
        promql=Grew("preemptions_total"),
    ),
    Signal(
        "preemptions_rate",
        "requests/s",
        "running requests thrown out a second",
        lambda v, _: v.rate("preemptions_total"),
        promql=Expr("{g} / {window_seconds}", g=Grew("preemptions_total")),
    ),
    Signal(
        "preemptions_per_completion",
        "per completion",
        "thrown out for each request that finished",
        _per_completion,
        promql=Expr("{p} / clamp_min({f}, 1)", p=Grew("preemptions_total"), f=Grew("finished_requests_total")),
    ),
    Signal(
        "recompute_tokens_rate",
        "tokens/s",
        "tokens prefilled a second time",
        _recompute,
        promql=Expr(
            "clamp_min({done} - {first}, 0) / {window_seconds}",
            done=Grew("prefill_compute_tokens_total"),
            first=Grew("prefill_effective_tokens_total"),
        ),
    ),
    Signal(
        "rejected_requests",
        "requests",
        "requests shed before the queue",
        lambda v, _: v.increase("rejected_requests_total"),
        promql=Grew("rejected_requests_total"),
    ),
    Signal(
        "lora_pool_used_ratio",
        "ratio",
        "largest share of the adapter slots in use",
        lambda v, _: v.gauge("lora_pool_used_ratio", max),
        promql=Over("max", "lora_pool_used_ratio"),
    ),
    Signal(
        "lora_waiting_adapters",
        "adapters",
        "most adapters that waiting requests ask for",
        lambda v, _: v.gauge("lora_waiting_adapters", max),
        promql=Over("max", "lora_waiting_adapters"),
    ),
    Signal(
        "grammar_queue_max_requests",
        "requests",
        "most requests waiting for a grammar",
        lambda v, _: v.gauge("grammar_queue_requests", max),
        promql=Over("max", "grammar_queue_requests"),
    ),
    Signal(
        "kv_fetch_max_requests",
        "requests",
        "most requests whose KV is being loaded",
        lambda v, _: _fetch(v),
        promql=Over("max", Total("kv_fetch_waiting_requests", "kv_fetch_in_progress_requests")),
    ),
    Signal(
        "kv_fetch_done_max_requests",
        "requests",
        "most requests whose KV is loaded and who still do not run",
        lambda v, _: v.gauge("kv_fetch_done_requests", max),
        promql=Over("max", "kv_fetch_done_requests"),
    ),
    Signal(
        "pd_queue_max_requests",
        "requests",
        "most requests in the queues of prefill/decode disaggregation",
        lambda v, _: _pd(v),
        promql=Over(
            "max", Total("pd_bootstrap_queue_requests", "pd_inflight_queue_requests", "pd_transfer_queue_requests")
        ),
    ),
)


def _fetch(view: View) -> Result:
    names = ("kv_fetch_waiting_requests", "kv_fetch_in_progress_requests")
    if view.last(names[1]) is None:
        return view.why_missing(names[1])
    series = view.last(names[1])
    return Found(max(sum(s.value(n) or 0.0 for n in names) for s in view.snapshots), (series.series,) if series else ())


def _pd(view: View) -> Result:
    names = ("pd_bootstrap_queue_requests", "pd_inflight_queue_requests", "pd_transfer_queue_requests")
    found = [r for n in names if (r := view.last(n)) is not None]
    if not found:
        return view.why_missing(names[0])
    return Found(max(sum(s.value(n) or 0.0 for n in names) for s in view.snapshots), tuple(r.series for r in found))
