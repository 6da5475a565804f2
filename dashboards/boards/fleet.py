"""(a) All engines on one screen: who is worst, since when, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.models.dashboard import Dashboard

from boards.frame import ENGINE, FLEET, board, variables
from boards.panels import (
    CALM,
    Panel,
    bars,
    coloured,
    column,
    finished,
    lines,
    linked,
    number,
    painted,
    rows,
    states,
    transformed,
)
from boards.promql import WHO, Query, l2_code, recorded, verdict_code, worst_first
from boards.words import COLOURS, DOCS, answers, book, bottlenecks, l2_states, severities, urgencies

ONE = f"/d/{ENGINE}?${{__url_time_range}}&var-job=${{__data.fields.job}}&var-model=${{__data.fields.model}}"
ONE += "&var-instance=${__data.fields.instance}&var-rank=${__data.fields.rank}"
NAME = "{{instance}}/{{rank}}"


def dashboard() -> Dashboard:
    """The whole."""
    words = "Which gate keeps requests waiting in each engine rank, worst first. From the recording rules."
    return board(
        FLEET, words, variables(several=True), [], [*_top(), timeline(), worst(), *_counts(), *_imbalance(), *_load()]
    )


def _top() -> Iterator[Panel]:
    def tell(title: str, words: str, expr: str, steps: object = CALM) -> Panel:
        return finished(number([Query(expr, instant=True)], "short").no_value("0"), title, words, (6, 3), steps)

    alarm, warn = ((None, "green"), (1, "red")), ((None, "green"), (1, "orange"))
    verdict = recorded("verdict")
    yield tell("Engine ranks", "Ranks with a recorded verdict.", f"count({verdict})")
    critical = recorded("verdict", 'severity="critical"')
    yield tell("Critical", "Ranks whose verdict is critical.", f"count({critical}) or vector(0)", alarm)
    l1 = recorded("verdict", 'bottleneck="l1"')
    yield tell("L1-bound", "Ranks in which KV space keeps requests waiting.", f"count({l1}) or vector(0)", warn)
    blind = recorded("verdict", 'bottleneck=~"unknown|unreachable"')
    yield tell(
        "Not known", "Ranks that do not answer, or whose data do not suffice.", f"count({blind}) or vector(0)", warn
    )


def timeline() -> Panel:
    """Verdicts over time."""
    words = "The closed gate of every rank over time. Green: requests are admitted as they come. Grey: not known."
    made = states([Query(verdict_code("instance, rank"), NAME)], bottlenecks())
    return finished(made, "Verdict of every engine rank", words, (24, 9))


COLUMNS = {
    "Value #A": "urgency", "Value #B": "waiting", "Value #C": "KV used", "Value #D": "blocked",
    "Value #E": "TTFT P99, at least", "Value #F": "TTFT P99, at most", "Value #G": "L2",
}  # fmt: skip
ORDER = ("Value #A", "instance", "rank", "model", "bottleneck", "mode", "severity", "confidence")


def worst() -> Panel:
    """The table."""
    asked = [worst_first()]
    for what in ("waiting_last_requests", "l1_used_ratio_last", "blocked_ratio"):
        asked.append(f"max by ({WHO}) ({recorded(what)})")
    asked += [f"max by ({WHO}) ({recorded(f'ttft_p99_{end}_seconds')})" for end in ("low", "high")]
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
    coloured(made, "severity", severities())
    coloured(made, "L2", l2_states())
    for name in ("KV used", "blocked"):
        column(
            made,
            name,
            unit="percentunit",
            decimals=0,
            min=0,
            max=1,
            custom_cell_options={"type": "gauge", "mode": "basic"},
        )
    for name in ("TTFT P99, at least", "TTFT P99, at most"):
        column(made, name, unit="s", decimals=1)
    linked(made, "instance", "This engine in detail", ONE)
    return linked(made, "bottleneck", "What it means", f"{DOCS}/verdicts.md#${{__data.fields.rule}}")


def _counts() -> Iterator[Panel]:
    verdict = f"count by (bottleneck) ({recorded('verdict')})"
    words = "How many ranks have which bottleneck now."
    yield finished(
        painted(bars([Query(verdict, "{{bottleneck}}", instant=True)], "short"), COLOURS),
        "Ranks by bottleneck",
        words,
        (8, 8),
    )
    words = (
        "The same over time. Many ranks that change together have a common cause: arrivals, a rollout, a shared tier."
    )
    yield finished(
        painted(lines([Query(verdict, "{{bottleneck}}")], "short", stacked=True), COLOURS),
        "Ranks by bottleneck over time",
        words,
        (10, 8),
    )
    states_now = f"count by (state) ({recorded('l2_state')})"
    words = "States of host tiers. Only idle_space means that L2 is known to be half empty."
    yield finished(bars([Query(states_now, "{{state}}", instant=True)], "short"), "Ranks by L2 state", words, (6, 8))


def _imbalance() -> Iterator[Panel]:
    yield "Imbalance"
    used, lead = recorded("l1_used_ratio_mean"), book().number("peer_used_lead")
    spread = f"max by (job, model) ({used}) - min by (job, model) ({used})"
    words = (
        "Held KV space of the fullest rank less that of the emptiest, of each model. Large while somebody waits: "
        "requests are not spread by what is free."
    )
    steps = ((None, "green"), (lead, "orange"))
    yield finished(
        lines([Query(spread, "{{model}} {{job}}")], "percentunit", top=1),
        "KV space: fullest less emptiest",
        words,
        (8, 8),
        steps,
    )
    running = recorded("running_mean_requests")
    over = f"max by (job, model) ({running}) / (avg by (job, model) ({running}) > 0)"
    words = "Running requests of the busiest rank over the mean, of each model: 1 is even."
    steps = ((None, "green"), (1 + book().number("peer_running_lead"), "orange"))
    yield finished(
        lines([Query(over, "{{model}} {{job}}")], "short"), "Running: busiest over mean", words, (8, 8), steps
    )
    hot = recorded("check", 'check="hot_rank"')
    hot = f"max by (job, model, instance, rank) ({hot})"
    words = f"Ranks that the check hot_rank calls hot: full while a peer has room. See {DOCS}/checks/hot_rank.md."
    yield finished(states([Query(hot, NAME)], answers()), "Hot ranks", words, (8, 8))


def _load() -> Iterator[Panel]:
    yield "Load"
    for title, what, unit, words in (
        ("Waiting", "waiting_last_requests", "short", "Requests waiting, the ten longest queues."),
        (
            "KV space held",
            "l1_used_ratio_last",
            "percentunit",
            "Held part of the KV pool, the ten fullest. High usage alone is no bottleneck.",
        ),
    ):
        yield finished(lines([Query(f"topk(10, {recorded(what)})", NAME)], unit), title, words, (12, 8))
