"""The service's own /metrics: what Prometheus can alert on and plot, judged by promtool and the real Prometheus."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parsed

from diagnoser.model import Diagnosis, L2State
from diagnoser.service.api.models import BOTTLENECKS
from diagnoser.service.enginemetrics import SIGNALS
from service.alertmanagers import prometheus_that_alerts
from service.web_kit import BOUND, DEAD, HEALTHY, IDLE_L2, TWO_RANKS, Web, named, recorded, serve

OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0"}


def fleet() -> list[Diagnosis]:
    bound, calm = recorded(BOUND, 60)[0], recorded(HEALTHY)[0]
    others = (*recorded(TWO_RANKS), *recorded(IDLE_L2), *recorded(DEAD))
    return [named(bound, "10.0.3.7:8000"), named(calm, "10.0.3.8:30000"), *others]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve() as web:
        web.evaluated(*fleet())
        web.world.stats.polled("10.0.3.7:8000", 0.012, False, 1795976065.0)
        web.world.stats.polled("10.0.3.7:8000", 5.0, True, 1795976066.0)
        web.world.stats.skipped("10.0.3.7:8000", 2, by_us=True)
        web.world.stats.skipped("10.0.3.7:8000", 3, by_us=False)
        yield web


def samples(web: Web) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in parsed(web.get("/metrics").text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def of(found: list[tuple[dict[str, str], float]], **labels: str) -> list[tuple[dict[str, str], float]]:
    return [(have, value) for have, value in found if labels.items() <= have.items()]


def test_promtool_has_nothing_to_say(web: Web) -> None:
    page = web.get("/metrics").text
    done = subprocess.run(["promtool", "check", "metrics"], input=page, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_openmetrics_says_the_same(web: Web) -> None:
    answer = web.get("/metrics", headers=OPENMETRICS)
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    names = {family.name for family in openmetrics(answer.text)}
    assert {"diagnoser_verdict", "diagnoser_l1_tokens", "diagnoser_scrapes"} <= names


def test_page_is_packed_for_who_takes_it(web: Web) -> None:
    packed = web.get("/metrics", headers={"Accept-Encoding": "gzip"})
    plain = web.get("/metrics", headers={"Accept-Encoding": "identity"})
    assert packed.headers["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain.headers
    assert packed.text.splitlines()[:50] == plain.text.splitlines()[:50]


def test_names_and_units(web: Web) -> None:
    for family in parsed(web.get("/metrics").text):
        assert family.name.startswith(("diagnoser_", "process_", "python_")), family.name
        assert family.documentation.endswith(".") or not family.name.startswith("diagnoser_")


def test_exactly_one_bottleneck_severity_and_l2_state(web: Web) -> None:
    found = samples(web)
    engines = [(entry.key.target, entry.key.rank) for entry in web.world.board.entries()]
    for target, rank in engines:
        who = {"target": target, "rank": rank}
        verdicts = of(found["diagnoser_verdict"], **who)
        assert [labels["bottleneck"] for labels, _ in verdicts] == list(BOTTLENECKS)
        for name, count in (("verdict", len(BOTTLENECKS)), ("severity", 3), ("l2_state", len(L2State))):
            values = [value for _, value in of(found[f"diagnoser_{name}"], **who)]
            assert len(values) == count and sum(values) == 1 and set(values) == {0, 1}
        assert len(of(found["diagnoser_verdict_info"], **who)) == 1
    one = of(found["diagnoser_verdict"], target="10.0.3.7:8000", bottleneck="l1")
    assert one == [({"target": "10.0.3.7:8000", "rank": "0", "model": "tiny", "engine_family": "vllm",
                     "bottleneck": "l1"}, 1.0)]  # fmt: skip


def test_three_pool_states_as_ranges(web: Web) -> None:
    found = samples(web)
    low = of(found["diagnoser_l1_tokens"], target="10.0.3.7:8000", bound="low")
    high = of(found["diagnoser_l1_tokens"], target="10.0.3.7:8000", bound="high")
    assert [labels["state"] for labels, _ in low] == ["used", "evictable", "available"]
    capacity = of(found["diagnoser_l1_capacity_tokens"], target="10.0.3.7:8000")[0][1]
    assert sum(value for _, value in low) <= capacity == 8160.0
    assert all(a <= b for (_, a), (_, b) in zip(low, high, strict=True))


def test_gates_queue_and_ttft(web: Web) -> None:
    found = samples(web)
    shares = of(found["diagnoser_gate_closed_ratio"], target="10.0.3.7:8000")
    assert sum(value for _, value in shares) == pytest.approx(1.0, abs=0.001)
    for name in ("requests_waiting", "requests_running", "ttft_mean_seconds", "preemptions_per_second"):
        assert of(found[f"diagnoser_{name}"], target="10.0.3.7:8000"), name
    assert not of(found["diagnoser_requests_waiting"], target=DEAD), "nothing is known of a dead engine's queue"


def test_what_is_unknown_is_absent_not_zero(web: Web) -> None:
    found = samples(web)
    assert of(found["diagnoser_verdict"], target=DEAD, bottleneck="unreachable")[0][1] == 1.0
    assert not of(found.get("diagnoser_l1_tokens", []), target=DEAD)


def test_the_service_itself(web: Web) -> None:
    found = samples(web)
    assert found["diagnoser_scrapes_total"][0][1] == 2 and found["diagnoser_scrape_failures_total"][0][1] == 1
    assert of(found["diagnoser_target_scrape_failures_total"], target="10.0.3.7:8000")[0][1] == 1
    assert found["diagnoser_missed_polls_total"] == [({}, 2)] and found["diagnoser_overrun_polls_total"] == [({}, 3)]
    buckets = {labels["le"]: value for labels, value in found["diagnoser_scrape_duration_seconds_bucket"]}
    assert (buckets["0.01"], buckets["0.025"], buckets["5.0"], buckets["+Inf"]) == (0, 1, 2, 2)
    assert found["diagnoser_evaluation_duration_seconds_count"][0][1] == 1
    for name, value in {"history_healthy": 1, "outbox_depth": 0, "outbox_dead": 0, "event_clients": 0,
                        "config_last_reload_successful": 1, "rule_errors": 0}.items():  # fmt: skip
        assert found[f"diagnoser_{name}"] == [({}, value)]
    assert found["diagnoser_build_info"][0][0]["version"] == web.json("/api/v1/status")["version"]
    for name in ("last_evaluation_timestamp_seconds", "config_last_reload_success_timestamp_seconds"):
        assert found[f"diagnoser_{name}"][0][1] > 1e9


def test_labels_of_targets_can_be_joined(web: Web) -> None:
    found = of(samples(web)["diagnoser_target_labels"], target="10.0.3.7:8000")
    assert found == [({"target": "10.0.3.7:8000", "label_team_a": "chat"}, 1.0)]


def test_requests_are_counted_by_route_not_by_path(web: Web) -> None:
    for path in ("/api/v1/engines/a/0/verdict", "/api/v1/engines/b/0/verdict", "/nothing/1", "/nothing/2"):
        web.get(path)
    counted = samples(web)["diagnoser_http_requests_total"]
    assert of(counted, route="/api/v1/engines/{engine:path}/verdict", code="404")[0][1] == 2
    assert of(counted, route="other", code="404")[0][1] == 2


def test_series_of_an_engine_that_is_gone_are_gone_at_once() -> None:
    with serve() as web:
        web.evaluated(*fleet())
        assert 'target="10.0.3.7:8000"' in web.get("/metrics").text

        async def drop() -> Any:
            board = web.world.board
            board.drop([entry.key for entry in board.entries() if entry.key.target == "10.0.3.7:8000"])

        web.do(drop())
        left = [line for line in web.get("/metrics").text.splitlines() if 'target="10.0.3.7:8000"' in line]
        assert left == []


def test_labels_are_escaped() -> None:
    nasty = 'a"b\\c\nd'
    with serve() as web:
        web.evaluated(named(recorded(HEALTHY)[0], nasty))
        found = samples(web)
        assert {labels["target"] for labels, _ in found["diagnoser_verdict"]} == {nasty}


def test_failed_reload_and_broken_history_can_be_alerted_on() -> None:
    with serve() as web:
        web.world.refusal = "diagnoser.yaml:1: no"
        web.client.post("/api/v1/config/reload")
        assert samples(web)["diagnoser_config_last_reload_successful"] == [({}, 0.0)]


def test_the_alerts_of_the_docs_fire_in_a_real_prometheus(tmp_path: Path) -> None:
    """All are loaded; of a service that works well the one about a bound engine fires, with the engine's labels."""
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text().partition("# alerts\n")[2].partition("```")[0]
    rules = [{"alert": f"rule_{i}", "expr": line.strip("# ")} for i, line in enumerate(text.splitlines())]
    assert len(rules) == 3 and "diagnoser_verdict{" in rules[0]["expr"]

    def firing(url: str) -> list[dict[str, str]]:
        found = httpx.get(f"{url}/api/v1/alerts", trust_env=False, timeout=10).json()["data"]["alerts"]
        return [one["labels"] for one in found if one["state"] == "firing"]

    with serve() as web:
        now = time.time()
        web.evaluated(*(replace(one, at=now) for one in fleet()))
        address = web.url.removeprefix("http://")
        with prometheus_that_alerts(tmp_path / "prometheus", address, "http://127.0.0.1:9", *rules) as url:
            while not (found := firing(url)):
                time.sleep(0.1)
            critical = [one for one in fleet() if (one.verdict.bottleneck, one.verdict.severity) == ("l1", "critical")]
            assert {one["alertname"] for one in found} == {"rule_0"}
            assert {one["target"] for one in found} == {one.engine.target for one in critical} != set()
            assert all(one["bottleneck"] == "l1" and one["model"] for one in found)


def test_docs_name_every_metric_and_no_other(web: Web) -> None:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    told = set(re.findall(r"`(diagnoser_[a-z0-9_]+)`", text))
    web.get("/healthz")
    exported = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for name in samples(web)
        if name.startswith("diagnoser_") and not name.endswith("_created")
    }
    assert told == exported | {f"diagnoser_{name}" for name, _, _ in SIGNALS}
