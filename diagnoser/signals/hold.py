"""What KV space is held for: prefill or decoding, and how much of the prompts comes from a cache.

Theory: a host tier saves prefill only, so it helps where prefill is a real part of the hold or prefixes come back.
"""

from __future__ import annotations

from diagnoser.signals.base import Params, Signal
from diagnoser.signals.promql import Expr, First, Grew, mean_of
from diagnoser.signals.view import Found, Missing, Result, View


def _decode_hold(view: View, _: Params) -> Result:
    """Decoding by decoding plus prefill; where the engine has no such times, what follows the first token by all
    that follows the queue.
    """
    decode, prefill = view.observed_mean("decode_seconds"), view.observed_mean("prefill_seconds")
    if isinstance(decode, Found) and isinstance(prefill, Found):
        whole = decode.value + prefill.value
        return Found(decode.value / whole, decode.series + prefill.series) if whole > 0 else Missing("no time was held")
    whole_time, first, queue = (view.observed_mean(name) for name in ("e2e_seconds", "ttft_seconds", "queue_seconds"))
    for part in (whole_time, first, queue):
        if isinstance(part, Missing):
            return part
    assert isinstance(whole_time, Found) and isinstance(first, Found) and isinstance(queue, Found)
    held = whole_time.value - queue.value
    if held <= 0 or whole_time.value <= first.value:
        return Missing("those who finished and those who got a first token are not the same requests")
    series = whole_time.series + first.series + queue.series
    return Found(min(1.0, (whole_time.value - first.value) / held), series)


def _prompt_per_output(view: View, _: Params) -> Result:
    prompt, output = view.rate("prompt_tokens_total"), view.rate("generation_tokens_total")
    if isinstance(prompt, Missing):
        return prompt
    if isinstance(output, Missing):
        return output
    if output.value <= 0:
        return Missing("no token was generated in this window")
    return Found(prompt.value / output.value, prompt.series + output.series)


def _prefix_hit(view: View, _: Params) -> Result:
    """Tokens found in L1's own prefix cache. 0/0 while the queue is stuck is not 0."""
    hits, queries = view.increase("prefix_hits_total"), view.increase("prefix_queries_total")
    if isinstance(hits, Missing):
        return hits
    if isinstance(queries, Missing):
        return queries
    if queries.value <= 0:
        return Missing("nothing was looked up in the prefix cache in this window")
    return Found(hits.value / queries.value, hits.series + queries.series)


SIGNALS = (
    Signal(
        "decode_hold_ratio",
        "ratio",
        "share of the time requests hold KV space that they decode",
        _decode_hold,
        promql=First(
            Expr("{d} / (({d} + {p}) > 0)", d=mean_of("decode_seconds"), p=mean_of("prefill_seconds")),
            Expr(
                "clamp_max(({e} - {t}) / (({e} - {q}) > 0), 1) and ({e} > {t})",
                e=mean_of("e2e_seconds"),
                t=mean_of("ttft_seconds"),
                q=mean_of("queue_seconds"),
            ),
        ),
    ),
    Signal(
        "prompt_per_output_ratio",
        "tokens",
        "prompt tokens an output token",
        _prompt_per_output,
        promql=Expr("{p} / ({o} > 0)", p=Grew("prompt_tokens_total"), o=Grew("generation_tokens_total")),
    ),
    Signal(
        "prefix_hit_ratio",
        "ratio",
        "prompt tokens found in L1's prefix cache",
        _prefix_hit,
        promql=Expr("{h} / ({q} > 0)", h=Grew("prefix_hits_total"), q=Grew("prefix_queries_total")),
    ),
)
