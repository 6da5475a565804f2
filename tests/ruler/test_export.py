"""`diagnose rules export`: what is committed is what the rules say, and Prometheus' own tool accepts and tests it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from prometheus.servers import binary
from ran import Ran
from story import BOOK

from diagnoser.promql.export import ALERTS, RECORDING, TESTS, Export, files

Diagnose = Callable[..., Ran]
COMMITTED = Path(__file__).parents[2] / "rules" / "prometheus"


def tool(*words: str, cwd: Path) -> str:
    """promtool's words; it must be content."""
    ran = subprocess.run([binary("promtool"), *words], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def rules_of(text: str) -> list[dict[str, str]]:
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def test_committed_rules_are_current() -> None:
    made = files(BOOK, Export())
    assert {path.name for path in COMMITTED.iterdir()} == set(made)
    for name, text in made.items():
        assert (COMMITTED / name).read_text() == text, f"run `diagnose rules export -o rules/prometheus` ({name})"


def test_no_rule_is_tied_to_the_end_of_a_query() -> None:
    """A replay asks for the whole past of a rule in one query."""
    assert [
        rule for rule in rules_of((COMMITTED / RECORDING).read_text()) if re.search(r"@ |end\(\)", rule["expr"])
    ] == []


def test_promtool_accepts_the_rules() -> None:
    assert tool("check", "rules", RECORDING, ALERTS, cwd=COMMITTED).count("SUCCESS") == 2


def test_vmalert_accepts_the_rules_and_refuses_broken_ones(tmp_path: Path) -> None:
    """Its own parser reads expressions and templates."""

    def tried(*paths: Path) -> int:
        words = [binary("vmalert"), "-dryRun", *(f"-rule={path}" for path in paths)]
        return subprocess.run(words, capture_output=True, timeout=60).returncode

    assert tried(COMMITTED / RECORDING, COMMITTED / ALERTS) == 0
    broken = tmp_path / RECORDING
    broken.write_text((COMMITTED / RECORDING).read_text().replace("group without ()", "groups without ()"))
    assert tried(broken) != 0


def test_every_alert_is_silent_and_fires_and_ends() -> None:
    assert "SUCCESS" in tool("test", "rules", TESTS, cwd=COMMITTED)
    tests = yaml.safe_load((COMMITTED / TESTS).read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    tried = {name: {bool(c["exp_alerts"]) for c in cases if c["alertname"] == name} for name in _names(cases)}
    alerts = {rule["alert"] for rule in rules_of((COMMITTED / ALERTS).read_text())}
    assert set(tried) == alerts and all(seen == {True, False} for seen in tried.values())


def _names(cases: list[dict[str, str]]) -> set[str]:
    return {case["alertname"] for case in cases}


def test_a_broken_alert_does_not_pass(tmp_path: Path) -> None:
    for name in (ALERTS, TESTS):
        (tmp_path / name).write_text(
            (COMMITTED / name).read_text().replace('rule="slots"}) == 1', 'rule="slots"}) == 2')
        )
    ran = subprocess.run([binary("promtool"), "test", "rules", TESTS], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode != 0 and "EngineSlots" in ran.stdout + ran.stderr


def test_every_bottleneck_and_every_warning_has_an_alert() -> None:
    alerts = {rule["alert"]: rule for rule in rules_of((COMMITTED / ALERTS).read_text())}
    camel = lambda name: "".join(part.capitalize() for part in name.split("_"))  # noqa: E731
    bound = [rule for rule in BOOK.verdicts if rule.bottleneck not in ("none", "unknown")]
    warned = [check for check in BOOK.checks if check.kind != "data" and check.severity != "info"]
    assert {f"Engine{camel(rule.id)}" for rule in bound} | {f"EngineCheck{camel(c.id)}" for c in warned} <= set(alerts)
    for alert in alerts.values():
        assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
        page, _, anchor = alert["annotations"]["runbook_url"].partition("/docs/")[2].partition("#")
        text = (COMMITTED.parents[1] / "docs" / page).read_text()
        assert not anchor or f'<a id="{anchor}"></a>' in text


def test_for_an_operator_and_for_mimir(diagnose: Diagnose) -> None:
    operator = list(yaml.safe_load_all(diagnose("rules", "export", "--format", "prometheus-operator").out))
    assert {(one["kind"], one["apiVersion"]) for one in operator} == {("PrometheusRule", "monitoring.coreos.com/v1")}
    assert [one["metadata"]["name"] for one in operator] == ["diagnoser-sglang", "diagnoser-vllm", "diagnoser"]
    mimir = yaml.safe_load(diagnose("rules", "export", "--format", "mimir").out)
    assert mimir["namespace"] == "diagnoser"
    assert [group["name"] for group in mimir["groups"]] == [
        group["name"] for one in operator for group in one["spec"]["groups"]
    ]
    assert len({group["name"] for group in mimir["groups"]}) == len(mimir["groups"])


def test_made_for_another_server(diagnose: Diagnose, tmp_path: Path) -> None:
    words = ["--window", "2m", "--interval", "30s", "--by", "cluster", "--match", 'team="chat"']
    ran = diagnose(
        "rules", "export", *words, "--fact", "max_num_seqs=64", "--runbooks", "http://kb", "-o", str(tmp_path)
    )
    assert ran.code == 0 and ran.out.count("\n") == 3
    recording = rules_of((tmp_path / RECORDING).read_text())
    own = [rule for rule in recording if rule["record"] == "rank:vllm_waiting_max_requests:2m"]
    assert 'team="chat"' in own[0]["expr"]
    assert "job, instance, cluster, model_name, engine" in own[0]["expr"]
    assert any(rule["record"] == "rank:vllm_slots_free_requests:now" for rule in recording)
    assert "http://kb/verdicts.md#slots" in (tmp_path / ALERTS).read_text()
    tool("check", "rules", RECORDING, ALERTS, cwd=tmp_path)
    tool("test", "rules", TESTS, cwd=tmp_path)


@pytest.mark.parametrize("words", [("--format", "nagios"), ("--window", "soon"), ("-o", "/dev/null/x")])
def test_what_cannot_be_exported(diagnose: Diagnose, words: tuple[str, ...]) -> None:
    assert diagnose("rules", "export", *words).code == 64
