"""Panels of both engine dashboards: time to first token, and what L2 can spare of it."""

from __future__ import annotations

from boards.ledgers import Size
from boards.panels import CALM, Panel, band, column, finished, lines, painted
from boards.promql import Query, edge, lower, of_family, rate, recorded
from boards.words import BLUE, GREEN, GREY, ORANGE, PURPLE, RED


def ttft(size: Size, target: float) -> Panel:
    """Percentiles as the buckets they lie in, and the part that is queueing."""
    queries = [
        Query(edge(family, 0.5, upper), f"P50, at {word}")
        for family in ("vllm", "sglang")
        for upper, word in ((False, "least"), (True, "most"))
    ]
    queries += [
        Query(lower(f"max({recorded('ttft_p99_low_seconds')})"), "P99, at least"),
        Query(f"max({recorded('ttft_p99_high_seconds')})", "P99, at most"),
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
        decimals=0,
        min=0,
        max=1,
        custom_axis_placement="right",
        custom_axis_label="",
        custom_fill_opacity=0,
        custom_line_style={"fill": "dot", "dash": [2, 4]},
    )
    painted(made.no_value("No first token in the window"), {"queue share": RED})
    words = (
        "Time to first token. A histogram only tells the bucket that a percentile lies in: bands, not lines. Dotted, "
        "right axis: the part of it spent waiting. Requests that gave up before a first token are in none of it."
    )
    return finished(made, "TTFT P50 and P99, with the queue share", words, size, ((None, "green"), (target, "red")))


def hits(size: Size) -> Panel:
    """Prompt tokens by where they were found."""
    told = (
        ("computed", GREY, "local_compute", "input"), ("from L1", GREEN, "local_cache_hit", "device_hit"),
        ("from L2", BLUE, "external_kv_transfer", "host_hit"), ("from below L2", PURPLE, "", "storage_hit"),
    )  # fmt: skip
    queries = []
    for name, _, source, mode in told:
        if source:
            found = rate("vllm", "prompt_tokens_by_source_total", f'source="{source}"')
            queries.append(Query(f"max({found})", name))
        found = rate("sglang", "prefill_effective_tokens_total", f'mode="{mode}"')
        queries.append(Query(f"max({found})", name))
    made = painted(
        lines(queries, "short", "tokens a second", stacked=True), {name: colour for name, colour, *_ in told}
    )
    made.no_value("This release does not tell where prompt tokens were found")
    words = (
        "Prompt tokens a second: computed (local_compute, input), found in L1 (local_cache_hit, device_hit), found in "
        "L2 (external_kv_transfer, host_hit) or below (storage_hit). This is all that L2 can give: prefill that is not"
        " done."
    )
    return finished(made, "Prompt tokens: computed, from L1, from L2", words, size, CALM)
