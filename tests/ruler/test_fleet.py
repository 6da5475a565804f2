"""`diagnose --prometheus` of a fleet: computed by the server, the worst from samples, or as its rules have recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fleet.recordings_into import COMMON_END, Loaded
from prometheus.conftest import Proxy
from ran import Ran

Diagnose = Callable[..., Ran]
WINDOW = ("--window", "40s", "--at", str(COMMON_END + 0.5))


def lines(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def test_a_fleet_is_computed_by_the_server(diagnose: Diagnose, held: Loaded) -> None:
    ran = diagnose("--prometheus", held.url, *WINDOW)
    table = ran.out.partition("\n\n")[0].splitlines()
    assert table[0].split() == ["engine", "verdict", "closed", "wait", "used", "TTFT", "P99"]
    assert sum(line.startswith("  …") for line in table) >= 25
    assert table[1].split()[1:3] != ["NO", "BOTTLENECK"] and "NO BOTTLENECK" in "\n".join(table[-12:])
    assert "in PromQL at steps of 5 s" in " ".join(ran.out.split())
    assert "were looked at from their samples" in " ".join(ran.out.split())
    assert "Checklist" in ran.out and "Do, in this order" in ran.out and ran.code == 2
    assert "ranks: " in ran.out and "tokens free" in " ".join(ran.out.split())  # the spread over the replicas
    assert max(map(len, ran.out.splitlines())) <= 80


def test_both_ways_agree_on_every_engine(diagnose: Diagnose, held: Loaded) -> None:
    """At one instant; which differences there are over time is listed in tests/promql."""
    found = {}
    for way in ("server", "samples"):
        ran = diagnose("--prometheus", held.url, *WINDOW, "--evaluate", way, "--format", "jsonl")
        found[way] = {(one["engine"]["target"], one["engine"]["rank"]): one for one in lines(ran)}
    assert set(found["server"]) == set(found["samples"]) and len(found["server"]) >= 25
    differ = {
        key: (found["server"][key]["verdict"]["bottleneck"], one["verdict"]["bottleneck"])
        for key, one in found["samples"].items()
        if found["server"][key]["verdict"]["bottleneck"] != one["verdict"]["bottleneck"]
    }
    assert len(differ) <= 1, differ
    bound = [one for one in found["server"].values() if one["verdict"]["bottleneck"] not in ("none", "unknown")]
    assert bound and all(one["checks"] and one["verdict"]["because"] for one in bound)


def test_one_engine_stays_with_samples(diagnose: Diagnose, held: Loaded) -> None:
    ran = diagnose("--prometheus", held.url, *WINDOW, "--match", 'instance="vllm-0.32.0--c-l1-preempt"')
    assert "L1-BOUND" in ran.out and "PromQL" not in ran.out


def test_a_partial_answer_makes_every_no_unknown(diagnose: Diagnose, held: Loaded, serve: Callable[..., str]) -> None:
    def partial(answer: dict[str, Any], query: str) -> None:
        answer["warnings"] = ["store 3 did not answer"]

    ran = diagnose("--prometheus", serve(Proxy(held.url, change=partial).handle), *WINDOW, "--format", "jsonl")
    verdicts = [one["verdict"] for one in lines(ran)]
    assert verdicts and not any(verdict["bottleneck"] == "none" for verdict in verdicts)
    assert {verdict["confidence"] for verdict in verdicts} == {"low"}
    assert any(verdict["mode"] == "partial_data" for verdict in verdicts)
    assert "store 3 did not answer" in ran.err


def test_a_query_that_fails_costs_its_signal_only(diagnose: Diagnose, held: Loaded, serve: Callable[..., str]) -> None:
    def refuse(answer: dict[str, Any], query: str) -> None:
        if "histogram_quantile" in query and "time_to_first_token" in query:
            answer.clear()
            answer |= {
                "status": "error",
                "errorType": "execution",
                "error": "query processing would load too many samples",
            }

    ran = diagnose("--prometheus", serve(Proxy(held.url, change=refuse).handle), *WINDOW)
    said = " ".join(ran.out.split())
    assert "could not be computed and is unknown" in said and "too many samples" in said
    assert "L1-BOUND" in said and ran.code == 2


@pytest.mark.parametrize("way", ["recorded"])
def test_without_rules_recorded_falls_back_to_samples(diagnose: Diagnose, held: Loaded, way: str) -> None:
    match = ("--match", 'instance="vllm-0.32.0--c-l1-preempt"')
    ran = diagnose("--prometheus", held.url, *WINDOW, *match, "--evaluate", way)
    assert "L1-BOUND" in ran.out and "recording rules" not in ran.out
