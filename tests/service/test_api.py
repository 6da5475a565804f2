"""The REST API as clients see it: the real application on a real port, verdicts from recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from diagnoser.outputs.contract import SCHEMA, as_data
from service.web_kit import (
    BOUND,
    HEALTHY,
    IDLE_L2,
    TWO_RANKS,
    Web,
    named,
    recorded,
    serve,
)

ONE, CALM = "10.0.3.7:8000/0", "10.0.3.8:30000/0"


def fleet() -> list[Any]:
    bound, calm = recorded(BOUND, 60)[0], recorded(HEALTHY)[0]
    return [named(bound, "10.0.3.7:8000"), named(calm, "10.0.3.8:30000"), *recorded(TWO_RANKS), *recorded(IDLE_L2)]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve() as web:
        web.evaluated(*fleet())
        yield web


def ids(found: Any) -> list[str]:
    return [one["id"] for one in found["engines"]]


def test_fleet_is_worst_first(web: Web) -> None:
    found = web.json("/api/v1/engines")
    urgencies = [one["urgency"] for one in found["engines"]]
    assert urgencies == sorted(urgencies, reverse=True) and urgencies[0] == 4
    assert ids(found) == found["ids"] and len(found["ids"]) == 5 and found["complete"] is True
    first = next(one for one in found["engines"] if one["id"] == ONE)
    assert (first["bottleneck"], first["family"], first["rank"]) == ("l1", "vllm", "0")
    assert first["l1"]["capacity"] == 8160.0 and len(first["l1"]["used"]) == 2


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("bottleneck=none", {CALM}),
        ("severity=critical&family=vllm&target=10.0.3.7:8000", {ONE}),
        ("model=lab-llama&bottleneck=none&bottleneck=l1&target=10.0.3.8:30000", {CALM}),
        ("model=nobody", set()),
    ],
)
def test_filters(web: Web, query: str, expected: set[str]) -> None:
    assert set(ids(web.json(f"/api/v1/engines?{query}"))) == expected
    found = web.json(f"/api/v1/verdicts?{query}")
    assert set(found["ids"]) == expected and len(found["verdicts"]) == len(expected)


def test_two_ranks_are_two_engines(web: Web) -> None:
    assert {f"{TWO_RANKS}/0", f"{TWO_RANKS}/1"} <= set(web.json("/api/v1/engines")["ids"])


@pytest.mark.parametrize("path", ["10.0.3.7:8000/0", "10.0.3.7%3A8000%2F0", "10.0.3.7:8000"])
def test_verdict_is_the_output_contract(web: Web, path: str) -> None:
    found = web.json(f"/api/v1/engines/{path}/verdict")
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(found)
    assert found == json.loads(json.dumps(as_data(fleet()[0])))


def test_checklist_has_its_evidence(web: Web) -> None:
    found = web.json(f"/api/v1/engines/{ONE}/checklist")
    closed = next(check for check in found["checks"] if check["id"] == "kv_space_closed")
    assert closed["answer"] == "yes" and closed["evidence"][0]["signal"]
    assert web.json(f"/api/v1/rules/checks/{closed['id']}")["title"] == closed["question"]
    assert len(found["checks"]) == len(fleet()[0].checks)


@pytest.mark.parametrize("engine", [ONE, CALM])
def test_what_if_also_of_a_healthy_engine(web: Web, engine: str) -> None:
    found = web.json(f"/api/v1/engines/{engine}/what-if")
    assert found["changes"] and {"arrival_rate", "rho"} <= set(found["load"])


def test_capacity_of_an_engine(web: Web) -> None:
    found = web.json(f"/api/v1/engines/{ONE}/capacity")
    assert found["signals"]["l1_capacity_tokens"]["value"] == 8160.0
    assert found["facts"]["block_size"]["value"] == 32.0


def test_targets_and_status(web: Web) -> None:
    assert "10.0.3.7:8000" in [one["name"] for one in web.json("/api/v1/targets")["targets"]]
    status = web.json("/api/v1/status")
    assert status["engines"] == 5 and status["history"]["healthy"] and status["problems"] == []
    assert status["by_bottleneck"]["none"] == 1


# ---------------------------------------------------------------- polling


def test_etag_saves_the_answer_until_the_next_evaluation() -> None:
    with serve() as web:
        web.evaluated(*fleet())
        for path in ("/api/v1/engines", "/api/v1/verdicts", f"/api/v1/engines/{ONE}", f"/api/v1/engines/{ONE}/verdict"):
            tag = web.get(path).headers["ETag"]
            again = web.get(path, headers={"If-None-Match": f'"other", {tag}'})
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
        web.evaluated(*(named(one, one.engine.target, one.at + 5) for one in fleet()))
        assert web.get("/api/v1/engines", headers={"If-None-Match": tag}).status_code == 200


def test_since_tells_what_changed_and_who_is_there() -> None:
    with serve() as web:
        web.evaluated(*fleet())
        cursor = web.json("/api/v1/engines")["cursor"]
        nothing = web.json(f"/api/v1/engines?since={cursor}")
        assert nothing["engines"] == [] and len(nothing["ids"]) == 5 and nothing["complete"] is False
        web.evaluated(named(recorded(BOUND)[0], "10.0.3.8:30000", 1795976200.0))
        changed = web.json(f"/api/v1/engines?since={cursor}")
        assert ids(changed) == [CALM] and changed["engines"][0]["bottleneck"] == "l1"
        for foreign in ("00000000.1", "rubbish", f"{cursor}99"):
            assert web.json("/api/v1/engines", params={"since": foreign})["complete"] is True


# ---------------------------------------------------------------- what was


def test_history_of_verdicts_and_signals() -> None:
    with serve() as web:
        first, later = recorded(BOUND, 60)[0], recorded(HEALTHY)[0]
        start = first.at
        web.evaluated(named(first, "10.0.3.7:8000"))
        web.evaluated(named(later, "10.0.3.7:8000", start + 60))
        span = f"start={start - 30}&end={start + 90}&step=30"
        found = web.json(f"/api/v1/history/verdicts?{span}&engine={ONE}")
        assert [point["bottleneck"] for point in found["points"]] == ["l1", "none"]
        assert web.json(f"/api/v1/history/verdicts?{span}&engine=nobody/0")["points"] == []
        signals = web.json(f"/api/v1/engines/{ONE}/signals?{span}&signal=waiting_last_requests")["signals"]
        assert len(signals["waiting_last_requests"]) == 2 and signals["waiting_last_requests"][0][1] > 10
        assert web.get(f"/api/v1/engines/nobody/0/signals?{span}").status_code == 404
        assert web.get(f"/api/v1/engines/{ONE}/signals?signal=no_such").json()["type"].endswith("no-such-signal")


def test_too_many_points_become_larger_steps(web: Web) -> None:
    assert web.json("/api/v1/history/verdicts?start=0&end=1100000&step=1")["step"] == 100.0


def test_transitions_by_range_and_by_cursor() -> None:
    with serve() as web:
        first, later = recorded(BOUND, 60)[0], recorded(HEALTHY)[0]
        web.evaluated(named(first, "10.0.3.7:8000"))
        web.evaluated(named(later, "10.0.3.7:8000", first.at + 60))
        found = web.json(f"/api/v1/transitions?start={first.at - 1}&end={first.at + 61}")
        assert [(one["before"], one["after"]) for one in found["transitions"]] == [
            (None, "l1/preempting"),
            ("l1/preempting", "none"),
        ]
        after = found["transitions"][0]["id"]
        assert [one["id"] for one in web.json(f"/api/v1/transitions?after={after}")["transitions"]] == [found["next"]]
        assert web.json(f"/api/v1/transitions?after={found['next']}") == {"transitions": [], "next": found["next"]}


# ---------------------------------------------------------------- rules, configuration, probes


def test_rules_and_their_words(web: Web) -> None:
    found = web.json("/api/v1/rules")
    assert found["errors"] == [] and found["rules"]["checks"][0]["id"] == "target_answers"
    assert web.json("/api/v1/rules/thresholds") == found["rules"]["thresholds"]
    verdict = web.json("/api/v1/rules/verdicts/l1_reservation")
    assert "means" in verdict["text"] and verdict["kind"] == "verdicts"
    assert web.json("/api/v1/rules/thresholds/gate_share_min")["text"].strip().startswith("why")


def test_reload_is_all_or_nothing() -> None:
    with serve() as web:
        assert web.client.post("/api/v1/config/reload").json()["ok"] is True
        web.world.refusal = "diagnoser.yaml:3: targets[0].statc: unknown key"
        refused = web.client.post("/api/v1/config/reload")
        assert refused.status_code == 409 and "unknown key" in refused.json()["detail"]
        assert web.json("/api/v1/config/status")["ok"] is False
        assert any("unknown key" in problem for problem in web.json("/api/v1/status")["problems"])
        chinese = web.json("/api/v1/status", params={"language": "zh"})["problems"]
        assert any(problem.startswith("新配置没有生效：") for problem in chinese)


def test_ready_only_once_something_was_evaluated() -> None:
    with serve() as web:
        assert web.json("/healthz") == {"status": "ok"}
        waiting = web.get("/readyz")
        assert waiting.status_code == 503 and waiting.json()["type"].endswith("not-ready")
        assert web.json("/api/v1/engines")["engines"] == []
        web.evaluated(*fleet())
        assert web.json("/readyz") == {"status": "ok"}


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/api/v1/nothing", 404, "not-found"),
        ("GET", "/api/v1/engines/nobody/0", 404, "no-such-engine"),
        ("GET", "/api/v1/engines/nobody/0/verdict", 404, "no-such-engine"),
        ("GET", "/api/v1/rules/checks/nothing", 404, "no-such-rule"),
        ("GET", "/api/v1/rules/nothing", 422, "invalid-request"),
        ("DELETE", "/api/v1/engines", 405, "method-not-allowed"),
        ("GET", "/api/v1/engines?bottleneck=nothing", 422, "invalid-request"),
        ("GET", "/api/v1/engines?unknown=1", 422, "invalid-request"),
        ("GET", "/api/v1/transitions?start=nan", 422, "invalid-request"),
        ("GET", "/api/v1/history/verdicts?start=2&end=1", 422, "invalid-request"),
        ("GET", "/api/v1/engines?since=1.2&since=1.3", 422, "invalid-request"),
        ("POST", "/api/v1/capacity", 422, "invalid-request"),
    ],
)
def test_errors_are_problem_documents(web: Web, method: str, path: str, status: int, kind: str) -> None:
    answer = web.client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    found = answer.json()
    assert found["type"] == f"urn:l1-diagnoser:problem:{kind}" and found["status"] == status
    assert found["title"] and found["detail"].endswith(".")
    assert status != 405 or answer.headers["Allow"] == "GET"


def test_invalid_requests_tell_the_place(web: Web) -> None:
    found = web.get("/api/v1/transitions?limit=0&start=abc").json()
    assert {error["where"] for error in found["errors"]} == {"query.limit", "query.start"}


def test_bug_is_told_without_its_trace(web: Web) -> None:
    board, web.world.board = web.world.board, None  # type: ignore[assignment]
    try:
        answer = web.get("/api/v1/engines")
    finally:
        web.world.board = board
    assert answer.status_code == 500 and answer.headers["Content-Type"] == "application/problem+json"
    assert "Traceback" not in answer.text and "NoneType" not in answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_head_is_get_without_a_body(web: Web) -> None:
    answer = web.client.head("/api/v1/engines")
    assert answer.status_code == 200 and answer.content == b"" and "ETag" in answer.headers


def test_description_is_complete(web: Web) -> None:
    document = web.json("/api/v1/openapi.json")
    operations = [(p, m, o) for p, ops in document["paths"].items() for m, o in ops.items()]
    for path, method, operation in operations:
        assert operation["summary"] and operation["tags"], path
        assert {"429", "500"} <= set(operation["responses"]), (path, method)
        for status, answer in operation["responses"].items():
            assert int(status) < 400 or list(answer["content"]) == ["application/problem+json"], (path, status)
    assert {"/healthz", "/readyz", "/metrics", "/api/v1/events", "/api/v1/grafana/fleet"} <= set(document["paths"])
    assert document["components"]["schemas"]["Diagnosis"]["properties"]["verdict"] == {
        "$ref": "#/components/schemas/Diagnosis_verdict"
    }


def test_docs_name_every_route(web: Web) -> None:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text().replace("`, `/rules", "`, `/api/v1/rules")
    paths = web.json("/api/v1/openapi.json")["paths"]
    assert [path for path in paths if path not in text and path.rpartition("/")[0] not in text] == []
    for path, operations in paths.items():
        for method in operations:
            assert f"{method.upper()} {path}" in text or "/grafana/" in path or "/rules/" in path, (method, path)
