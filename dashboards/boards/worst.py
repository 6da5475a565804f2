"""The table of the fleet: one line a rank, the worst on top."""

from __future__ import annotations

from boards.frame import ENGINE
from boards.panels import Panel, coloured, column, finished, gauge, hidden, linked, rows, transformed, wide
from boards.promql import WHO, Query, l2_code, lower, recorded, worst_first
from boards.words import DOCS, blocked, bottlenecks, l2_states, nothing, urgencies

ONE = f"/d/{ENGINE}?${{__url_time_range}}&var-job=${{__data.fields.job:percentencode}}"
ONE += "&var-model=${__data.fields.model:percentencode}"
ONE += "&var-instance=${__data.fields.instance:percentencode}&var-rank=${__data.fields.rank}"
ONE += "&var-datasource=${datasource}&var-window=${window}"
COLUMNS = {
    "Value #A": "urgency", "Value #B": "waiting", "Value #C": "KV held", "Value #D": "blocked",
    "Value #E": "TTFT P99 ≥", "Value #F": "TTFT P99 ≤", "Value #G": "L2",
}  # fmt: skip
ORDER = ("Value #A", "instance", "rank", "model", "bottleneck", "mode", "severity", "confidence")


def worst() -> Panel:
    """The table."""
    asked = [worst_first()]
    for what in ("waiting_last_requests", "l1_used_ratio_last", "blocked_ratio"):
        asked.append(f"max by ({WHO}) ({recorded(what)})")
    low, high = (f"max by ({WHO}) ({recorded(f'ttft_p99_{end}_seconds')})" for end in ("low", "high"))
    asked += [lower(low), high]
    made = rows([Query(expr, instant=True, table=True) for expr in [*asked, l2_code(WHO)]], "urgency")
    order = {name: place for place, name in enumerate((*ORDER, *list(COLUMNS)[1:], "family", "job", "rule"))}
    organize = {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": COLUMNS}
    words = (
        "One line a rank, the most urgent first, among equals the one that is blocked most. Click an instance for its "
        "detail, a bottleneck for its page. TTFT P99 is the bucket it lies in."
    )
    return finished(_dressed(transformed(made, merge={}, organize=organize)), "Engines, worst first", words, (24, 10))


def _dressed(made: Panel) -> Panel:
    coloured(made, "urgency", urgencies())
    coloured(made, "bottleneck", bottlenecks())
    coloured(made, "L2", [*l2_states(), nothing("unknown")])
    gauge(gauge(made, "KV held"), "blocked", blocked())
    for name in (COLUMNS["Value #E"], COLUMNS["Value #F"]):
        column(made, name, unit="s", custom_width=105)
    wide(
        made,
        urgency=90,
        rank=60,
        bottleneck=100,
        mode=110,
        confidence=105,
        waiting=80,
        KV_held=105,
        blocked=105,
        L2=115,
    )
    hidden(made, "severity", "family", "job", "rule")
    linked(made, "instance", "This engine in detail", ONE)
    return linked(made, "bottleneck", "What it means", f"{DOCS}/verdicts.md#${{__data.fields.rule}}")
