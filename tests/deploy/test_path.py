"""The whole path with the configuration of docker-compose.yml: engine, verdict, rule, Alertmanager, our webhook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .stack import Stack, running, until


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Running."""
    folder: Path = tmp_path_factory.mktemp("stack")
    with running(folder) as one:
        yield one


def alerts(stack: Stack, name: str) -> list[dict[str, Any]]:
    """Of that name or beginning, in Alertmanager."""
    return [one for one in stack.get("alertmanager", "/api/v2/alerts") if one["labels"]["alertname"].startswith(name)]


def test_the_service_names_the_gate_of_the_bound_engine_only(stack: Stack) -> None:
    def verdicts() -> dict[str, str]:
        """a verdict of both engines, l1 for the one"""
        found = stack.get("diagnoser", "/api/v1/engines")["engines"]
        told = {one["target"]: one["bottleneck"] for one in found}
        return told if told.get(stack.address("engine-bound")) == "l1" and len(told) == 2 else {}

    assert until(verdicts)[stack.address("engine-healthy")] == "none"


def test_prometheus_scrapes_all_and_its_rules_agree(stack: Stack) -> None:
    def recorded() -> list[dict[str, str]]:
        """the recorded verdict of the bound engine"""
        asked = 'rank:diagnoser_verdict:30s{bottleneck="l1"}'
        found = stack.get("prometheus", "/api/v1/query", query=asked)["data"]["result"]
        return [one["metric"] for one in found]

    assert {one["instance"] for one in until(recorded)} == {stack.address("engine-bound")}
    targets = stack.get("prometheus", "/api/v1/targets")["data"]["activeTargets"]
    assert {one["labels"]["instance"] for one in targets} == {
        stack.address(name) for name in ("engine-bound", "engine-healthy", "diagnoser")
    }
    rules = stack.get("prometheus", "/api/v1/rules")["data"]["groups"]
    assert [rule["lastError"] for group in rules for rule in group["rules"] if rule.get("lastError")] == []


def test_a_rule_fires_and_our_webhook_answers_with_the_verdict(stack: Stack) -> None:
    def fired() -> list[dict[str, Any]]:
        """an alert of our rules in Alertmanager"""
        return alerts(stack, "EngineL1")

    assert {one["labels"]["instance"] for one in until(fired)} == {stack.address("engine-bound")}

    def answered() -> list[dict[str, Any]]:
        """what our webhook did about it"""
        found = stack.get("diagnoser", "/api/v1/webhook/results")
        mine = [one for one in found if one["alert"]["labels"]["alertname"].startswith("EngineL1")]
        return [engine for one in mine for engine in one["engines"] if engine["diagnosis"] is not None]

    assert {one["engine"] for one in until(answered)} == {f"{stack.address('engine-bound')}/0"}


def test_our_own_alert_is_in_alertmanager(stack: Stack) -> None:
    def ours() -> list[dict[str, Any]]:
        """the alert that the service itself sends"""
        return alerts(stack, "EngineBottleneck")

    for one in until(ours):
        assert one["labels"]["instance"] == stack.address("engine-bound")
        assert (one["labels"]["bottleneck"], one["labels"]["team"]) == ("l1", "demo")
        assert one["annotations"]["summary"].startswith("L1-BOUND")
