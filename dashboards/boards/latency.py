"""Panels of both engine dashboards: time to first token, and what L2 can spare of it."""

from __future__ import annotations

from boards.ledgers import Size
from boards.panels import CALM, Panel, band, column, finished, lines, painted
from boards.promql import Query, edge, of_family, rate, recorded
from boards.words import BLUE, GREEN, GREY, ORANGE, RED


def ttft(size: Size, target: float) -> Panel:
    """Percentiles as the buckets they lie in, and the part that is queueing."""
    queries = [
        Query(edge(family, 0.5, upper), f"P50, at {word}")
        for family in ("vllm", "sglang")
        for upper, word in ((False, "least"), (True, "most"))
    ]
    queries += [
        Query(f"max({recorded(f'ttft_p99_{end}_seconds')})", f"P99, at {word}")
        for end, word in (("low", "least"), ("high", "most"))
    ]
    queries += [Query(f"max({of_family(family, 'queue_share_ratio')})", "queue share") for family in ("vllm", "sglang")]
    made = lines(queries, "s")
    for name, colour in (("P50", BLUE), ("P99", ORANGE)):
        painted(
            band(made, f"{name}, at least", f"{name}, at most"),
            {f"{name}, at {end}": colour for end in ("least", "most")},
        )
    column(
        made,
        "queue share",
        unit="percentunit",
        min=0,
        max=1,
        custom_axis_placement="right",
        custom_line_style={"fill": "dot", "dash": [2, 4]},
    )
    painted(made, {"queue share": RED})
    words = (
        "Time to first token. A histogram only tells the bucket that a percentile lies in: bands, not lines. Dotted, "
        "right axis: the part of it spent waiting. Requests that gave up before a first token are in none of it."
    )
    return finished(made, "TTFT P50 and P99, with the queue share", words, size, ((None, "green"), (target, "red")))


def hits(size: Size) -> Panel:
    """Prompt tokens by where they were found."""
    queries = [
        Query(f"max by (source) ({rate('vllm', 'prompt_tokens_by_source_total')})", "{{source}}"),
        Query(f"max by (mode) ({rate('sglang', 'prefill_effective_tokens_total')})", "{{mode}}"),
    ]
    computed, device, host, other = GREY, GREEN, BLUE, "purple"
    made = painted(
        lines(queries, "short", stacked=True),
        {"local_compute": computed, "input": computed, "local_cache_hit": device, "device_hit": device,
         "external_kv_transfer": host, "host_hit": host, "storage_hit": other},
    )  # fmt: skip
    words = (
        "Prompt tokens a second: computed (local_compute, input), found in L1 (local_cache_hit, device_hit), found in "
        "L2 (external_kv_transfer, host_hit) or below (storage_hit). This is all that L2 can give: prefill that is not"
        " done."
    )
    return finished(made, "Prompt tokens: computed, from L1, from L2", words, size, CALM)
