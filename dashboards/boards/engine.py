"""(b) One engine rank: what it does, which gate is closed, and the answers that led to the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.models.dashboard import Dashboard

from boards import latency, ledgers
from boards.frame import ENGINE, Bottlenecks, board, variables
from boards.panels import (
    Panel,
    coloured,
    column,
    finished,
    limit,
    lines,
    linked,
    number,
    painted,
    plain,
    rows,
    states,
    transformed,
)
from boards.promql import Query, l2_code, raw, recorded, service, verdict_code
from boards.words import (
    BLUE,
    DOCS,
    ORANGE,
    PURPLE,
    SIGNS,
    YELLOW,
    answers,
    blocked,
    book,
    bottlenecks,
    checks,
    l2_states,
    severities,
)

SHOWN = ("checklist", "look-alike", "finding")
"""Kinds of checks in the table; those of kind data only feed others."""


def dashboard() -> Dashboard:
    """The whole."""
    words = (
        "One engine rank in full. Regions: times with a bottleneck. Needs the recording rules; engine metrics are read"
        " raw."
    )
    target = book().number("ttft_target_seconds")
    panels = [
        *top(), timeline(), "KV space", ledgers.pool((12, 9)), ledgers.ranges((6, 9)), ledgers.preemptions((6, 9)),
        "Queue and batch", waiting(), ledgers.share((8, 9)), running(),
        "Time to first token", latency.ttft((12, 9), target), latency.hits((12, 9)),
        "Host tier", ledgers.resident((12, 8)), ledgers.traffic((12, 8)), "Checklist", checklist(), unanswered(),
    ]  # fmt: skip
    return board(ENGINE, words, variables(several=False), [Bottlenecks()], panels)


def top() -> Iterator[Panel]:
    """The verdict in words."""
    now = [Query(verdict_code("instance, rank"), instant=True)]
    words = f"The closed gate. Every verdict is explained in {DOCS}/verdicts.md."
    yield finished(number(now, "none", bottlenecks()), "Verdict", words, (4, 4))
    for label, words in (
        ("mode", "How the gate is closed, such as preempting or reservation; - if there is one way only."),
        ("severity", "critical: closed for most of the window, or nothing moves."),
        ("confidence", "high: direct evidence, and every look-alike excluded."),
    ):
        query = Query(f"max by ({label}) ({recorded('verdict')})", instant=True, table=True)
        mappings, empty = severities() if label == "severity" else (), "-" if label == "mode" else "unknown"
        made = number([query], "none", mappings, label, empty)
        if label != "severity":
            plain(made)
        yield finished(made, label.capitalize(), words, (3, 4))
    words = f"State of the host tier, {DOCS}/l2.md. Only idle_space means that it is known to be half empty."
    yield finished(number([Query(l2_code("instance, rank"), instant=True)], "none", l2_states()), "L2", words, (4, 4))
    part = number([Query(f"max({recorded('blocked_ratio')})", instant=True)], "percentunit")
    yield finished(part, "Blocked", "Part of the window in which somebody had to wait.", (3, 4), blocked())
    queue = number([Query(f"max({recorded('waiting_last_requests')})", instant=True)], "short")
    yield finished(
        queue, "Waiting", "Requests in the queue at the end of the window.", (4, 4), ((None, "green"), (1, "orange"))
    )


def timeline() -> Panel:
    """Verdict and L2 over time."""
    queries = [Query(verdict_code("instance, rank"), "verdict"), Query(l2_code("instance, rank"), "L2")]
    words = "The verdict and the state of the host tier over time."
    return finished(states(queries, [*bottlenecks(), *l2_states()]), "Verdict and L2 over time", words, (24, 4))


QUEUES = {
    "num_queue_reqs": "queue", "num_grammar_queue_reqs": "grammar", "num_prefill_bootstrap_queue_reqs": "P/D bootstrap",
    "num_decode_prealloc_queue_reqs": "P/D allocation", "num_decode_transfer_queue_reqs": "P/D transfer",
}  # fmt: skip


def waiting() -> Panel:
    """As the engines tell it."""
    reasons = f"max by (reason) ({raw('vllm', 'num_requests_waiting_by_reason')})"
    whole = f"max({raw('vllm', 'num_requests_waiting')}) unless max({raw('vllm', 'num_requests_waiting_by_reason')})"
    queries = [Query(reasons, "{{reason}}"), Query(whole, "queue")]
    queries += [Query(f"max({raw('sglang', metric)})", name) for metric, name in QUEUES.items()]
    made = painted(
        lines(queries, "short", "requests", stacked=True),
        {"capacity": ORANGE, "queue": ORANGE, "deferred": PURPLE, "grammar": YELLOW},
    )
    words = (
        "Waiting requests as the engine counts them. vLLM: deferred waits for something outside (a load, a grammar, an"
        " adapter), capacity is everything else, slots included. SGLang: its queues. Why the queue waits: the panel "
        "beside."
    )
    return finished(made, "Waiting by cause", words, (8, 9))


def running() -> Panel:
    """Against the slot limit."""
    queries = [
        Query(f"max({raw('vllm', 'num_requests_running')})", "running"),
        Query(f"max({raw('sglang', 'num_running_reqs')})", "running"),
        Query(f"max({recorded('running_top_requests')})", "most within the window"),
        Query(f"max({service('slots_limit')})", "slot limit"),
    ]
    made = painted(lines(queries, "short", "requests"), {"running": BLUE, "most within the window": "light-blue"})
    words = (
        "Running requests, and max_num_seqs or max_running_requests where the service knows it (no page has it: it is "
        "read from the engine or given as a fact). A flat top alone proves no limit: equal requests in a full pool are"
        " flat, too."
    )
    return finished(limit(made, "slot limit", "red"), "Running against the slot limit", words, (8, 9))


def checklist() -> Panel:
    """Questions that have an answer."""
    shown = "|".join(check.id for check in book().checks if check.kind in SHOWN)
    asked = recorded("check", f'check=~"{shown}"')
    made = rows([Query(f"max by (check) ({asked})", instant=True, table=True)], "answer")
    words = "The questions behind the verdict; yes on top. Click one for its page: what it means, where it comes from."
    return _checks(made, "Checklist: answered", words)


def unanswered() -> Panel:
    """Questions without an answer."""
    listed = " or ".join(
        f'label_replace(vector(-1), "check", "{check.id}", "", "")' for check in book().checks if check.kind in SHOWN
    )
    made = rows([Query(f"({listed}) unless on (check) {recorded('check')}", instant=True, table=True)], "answer")
    words = (
        "Questions that this engine's metrics cannot answer. Unknown is never read as no; the pages say what is "
        "missing."
    )
    return _checks(made, "Checklist: unknown", words)


def _checks(made: Panel, title: str, words: str) -> Panel:
    organize = {
        "excludeByName": {"Time": True},
        "renameByName": {"Value": "answer"},
        "indexByName": {"Value": 0, "check": 1},
    }
    column(transformed(made, organize=organize), "check", mappings=checks())
    column(made, "answer", custom_width=110)
    linked(made, "check", "What it asks and why", f"{DOCS}/checks/${{__value.raw}}.md")
    return finished(coloured(made, "answer", answers(SIGNS)), title, words, (12, 14))
