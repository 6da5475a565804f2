"""Panels of both engine dashboards: the ledgers of L1 and L2, and what flows between them."""

from __future__ import annotations

from boards.panels import Panel, band, column, finished, limit, lines, painted
from boards.promql import Query, of_family, rate, raw, recorded, service
from boards.words import BLUE, GATES, GREEN, GREY, ORANGE, RED, YELLOW

Size = tuple[int, int]
CAPACITY = Query(f"max({recorded('l1_capacity_tokens')})", "capacity")
UNTOLD = "evictable or available"
STATES = {"used": RED, "evictable": YELLOW, "available": GREEN, UNTOLD: "semi-dark-green"}


def pool(size: Size) -> Panel:
    """L1: three states in tokens, and the capacity."""
    usage, capacity = f"max({raw('vllm', 'kv_cache_usage_perc')})", f"max({recorded('l1_capacity_tokens')})"
    old, total = f"max({raw('sglang', 'num_used_tokens')})", f"max({raw('sglang', 'max_total_num_tokens')})"
    told = f"max({raw('sglang', 'kv_used_tokens')})"
    queries = [
        Query(f"max({raw('sglang', f'kv_{state}_tokens')})", state) for state in ("used", "evictable", "available")
    ]
    queries += [
        Query(f"{old} unless {told}", "used"),
        Query(f"({total} - {old}) unless {told}", UNTOLD),
        Query(f"round({usage} * {capacity})", "used"),
        Query(f"round((1 - {usage}) * {capacity})", UNTOLD),
        CAPACITY,
    ]
    words = (
        "The KV pool in tokens. used: held by requests; evictable: cached prefixes that admission may reclaim; "
        "available: free. vLLM, and SGLang before 0.5.11, do not tell evictable from available: each of the two lies "
        "between 0 and all of that area."
    )
    made = limit(painted(lines(queries, "short", "tokens", stacked=True), STATES), "capacity")
    return finished(made, "L1: the KV pool", words, size)


def ranges(size: Size) -> Panel:
    """L1: the two states that are often known as a range only."""
    queries = [
        Query(f'max({service("l1_tokens", f"""state="{state}",bound="{bound}" """.strip())})', f"{state}, at {word}")
        for state in ("evictable", "available")
        for bound, word in (("low", "least"), ("high", "most"))
    ]
    made = lines(queries, "short", "tokens").no_value("Needs diagnose serve among the scrape targets")
    for state, colour in (("evictable", YELLOW), ("available", GREEN)):
        painted(
            band(made, f"{state}, at least", f"{state}, at most"),
            {f"{state}, at {e}": colour for e in ("least", "most")},
        )
    words = (
        "What the service knows of the two states that the pool's picture cannot always tell apart: a band where it is"
        " a range, a line where it is exact. Needs `diagnose serve` among the scrape targets."
    )
    return finished(made, "Evictable and available: at least, at most", words, size)


def resident(size: Size) -> Panel:
    """L2: what it holds, and its size."""
    used, total = (f"max({raw('sglang', f'hicache_host_{name}_tokens')})" for name in ("used", "total"))
    upper = f"max({of_family('vllm', 'l2_resident_upper_ratio')})"
    queries = [
        Query(used, "resident"),
        Query(f"{total} - {used}", "free"),
        Query(total, "capacity"),
        Query(upper, "resident, at most"),
    ]
    made = painted(
        lines(queries, "short", "tokens", stacked=True), {"resident": BLUE, "free": GREEN, "resident, at most": BLUE}
    )
    column(
        limit(made.no_value("No host tier, or none whose metrics tell what it holds"), "capacity"),
        "resident, at most",
        unit="percentunit",
        decimals=0,
        max=1,
        custom_axis_placement="right",
        custom_axis_label="part of the tier",
        custom_line_width=1,
    )
    words = (
        "The host tier. SGLang's HiCache tells what is resident, in tokens. vLLM exports no residency: what was ever "
        "stored gives an upper bound, as a part of the tier; the truth lies anywhere below it. Its gauge "
        "kv_offload_cpu_cache_usage_perc counts pinned blocks only, and is not shown for that reason."
    )
    return finished(made, "L2: the host tier", words, size)


def traffic(size: Size) -> Panel:
    """L2: loads, stores and losses."""
    queries = [
        Query(f"max({rate('vllm', 'kv_offload_load_bytes_total')})", "loaded, bytes"),
        Query(f"max({rate('vllm', 'kv_offload_store_bytes_total')})", "stored, bytes"),
        Query(f"max({rate('sglang', 'load_back_tokens_total')})", "loaded, tokens"),
        Query(f"max({rate('sglang', 'hicache_backup_tokens_total')})", "stored, tokens"),
        Query(f"max by (reason) ({rate('sglang', 'hicache_dropped_tokens_total')})", "dropped, {{reason}}"),
    ]
    made = lines(queries, "short", "tokens a second").no_value("No host tier, or none whose metrics tell its traffic")
    for name in ("loaded, bytes", "stored, bytes"):
        column(made, name, unit="Bps", custom_axis_label="")
    colours = {"loaded, bytes": BLUE, "loaded, tokens": BLUE, "stored, bytes": GREY, "stored, tokens": GREY}
    words = (
        "Between L1 and L2, a second: vLLM in bytes, SGLang in tokens. Loads shorten prefill. They free no KV space: a"
        " hit in L2 takes as much of L1 as a miss. Dropped means thrown out of L2 or never stored, for lack of room."
    )
    dropped = {"dropped, host_pressure": RED, "dropped, write_through_unbacked_eviction": ORANGE}
    names = dict(zip(dropped, ("dropped, no room in L2", "dropped, not stored in time"), strict=True))
    return finished(painted(painted(made, colours), dropped, names), "L2: traffic", words, size)


def preemptions(size: Size) -> Panel:
    """Running requests thrown out."""
    queries = [
        Query(f"max({rate('vllm', 'num_preemptions_total')})", "preempted"),
        Query(f"max({rate('sglang', 'num_retracted_requests_total')})", "retracted"),
    ]
    words = (
        "Running requests thrown out of a full pool and computed again, a second (vLLM: preempted; SGLang: retracted, "
        "a counter that exists from the first one on)."
    )
    made = painted(lines(queries, "reqps"), {"preempted": RED, "retracted": RED})
    made.no_value("None so far: SGLang's counter exists from the first one on")
    return finished(made, "Preemptions", words, size)


def share(size: Size) -> Panel:
    """Which gate was closed."""
    made = lines([Query(f"max by (gate) ({recorded('share')})", "{{gate}}")], "percentunit", stacked=True, top=1)
    words = (
        "Part of the window in which somebody waited and each gate was the one that was closed. The rest: nobody had "
        "to wait."
    )
    return finished(painted(made, GATES), "Waiting by gate", words, size)
