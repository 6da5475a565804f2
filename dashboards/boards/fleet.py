"""(a) All engines on one screen: who is worst, since when, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.models.dashboard import Dashboard

from boards.frame import FLEET, board, variables
from boards.panels import (
    CALM,
    Panel,
    bars,
    finished,
    lines,
    number,
    painted,
    plain,
    ranked,
    states,
)
from boards.promql import Query, recorded, verdict_code
from boards.words import COLOURS, DOCS, L2_COLOURS, L2_NAMES, answers, book, bottlenecks
from boards.worst import worst

NAME = "{{instance}}/{{rank}}"


def dashboard() -> Dashboard:
    """The whole."""
    words = "Which gate keeps requests waiting in each engine rank, worst first. From the recording rules."
    return board(
        FLEET, words, variables(several=True), [], [*_top(), timeline(), worst(), *_counts(), *_imbalance(), *_load()]
    )


def _top() -> Iterator[Panel]:
    def tell(title: str, words: str, expr: str, steps: object = CALM) -> Panel:
        return finished(number([Query(expr, instant=True)], "short", empty="0"), title, words, (6, 3), steps)

    alarm, warn = ((None, "green"), (1, "red")), ((None, "green"), (1, "orange"))
    verdict = recorded("verdict")
    yield plain(tell("Engine ranks", "Ranks with a recorded verdict.", f"count({verdict})"))
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
        painted(lines([Query(verdict, "{{bottleneck}}")], "short", "ranks", stacked=True), COLOURS),
        "Ranks by bottleneck over time",
        words,
        (10, 8),
    )
    states_now = f"count by (state) ({recorded('l2_state')})"
    words = "States of host tiers. Only idle_space means that L2 is known to be half empty."
    untold = f"count({recorded('verdict')} unless on (job, model, instance, rank) {recorded('l2_state')})"
    queries = [Query(states_now, "{{state}}", instant=True), Query(untold, "unknown", instant=True)]
    made = painted(bars(queries, "short"), L2_COLOURS, L2_NAMES)
    yield finished(made, "Ranks by L2 state", words, (6, 8))


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
        lines([Query(over, "{{model}} {{job}}")], "short", "times the mean"),
        "Running: busiest over mean",
        words,
        (8, 8),
        steps,
    )
    hot = recorded("check", 'check="hot_rank"')
    hot = f"max by (job, model, instance, rank) ({hot})"
    words = f"Ranks that the check hot_rank calls hot: full while a peer has room. See {DOCS}/checks/hot_rank.md."
    yield finished(states([Query(hot, NAME)], answers()), "Hot ranks", words, (8, 8))


def _load() -> Iterator[Panel]:
    yield "Load"
    for title, what, unit, axis, words in (
        ("Waiting", "waiting_last_requests", "short", "requests", "Requests waiting, the ten longest queues."),
        (
            "KV space held",
            "l1_used_ratio_last",
            "percentunit",
            "",
            "Held part of the KV pool, the ten fullest. High usage alone is no bottleneck.",
        ),
    ):
        yield finished(
            ranked(
                lines(
                    [Query(f"topk(10, {recorded(what)})", NAME)], unit, axis, top=1 if unit == "percentunit" else None
                )
            ),
            title,
            words,
            (12, 8),
        )
