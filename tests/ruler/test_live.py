"""Our rules in a real Prometheus that scrapes an engine: it computes the verdict, alerts, and the command reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from prometheus.conftest import bare
from prometheus.servers import prometheus
from ran import Ran
from story import BOOK

from diagnoser.promql.export import ALERTS, RECORDING, Export, files
from diagnoser.sources.mock import MockEngine

from .conftest import rules_file

Diagnose = Callable[..., Ran]
WINDOW, PATIENCE = 10, 60.0
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{recording}, {alerts}]
scrape_configs:
  - job_name: llm
    static_configs: [{{targets: [{first}, {second}]}}]
"""


def eventually(ask: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """The first answer that is not empty; the assertion tells what never came."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if found := ask():
            return found
        time.sleep(0.5)
    raise AssertionError(f"nothing in {patience:g} s: {ask}")


def test_recorded_alerted_and_read(diagnose: Diagnose, tmp_path: Path) -> None:
    made = files(BOOK, Export(WINDOW, 1.0))
    recording = rules_file(tmp_path, RECORDING, made[RECORDING])
    alerts = rules_file(tmp_path, ALERTS, made[ALERTS])
    bound, healthy = (MockEngine(bare(name)) for name in ("vllm-0.32.0--c-l1-preempt", "vllm-0.32.0--g-prefix-full"))
    with bound, healthy:
        places = [engine.url.removeprefix("http://").partition("/")[0] for engine in (bound, healthy)]
        config = CONFIG.format(recording=recording, alerts=alerts, first=places[0], second=places[1])
        with prometheus(tmp_path / "prometheus", config=config) as url:
            _verdict_of(url, places[0], "l1")
            _verdict_of(url, places[1], "none")
            eventually(lambda: [a for a in _alerts(url, places[0]) if a["labels"]["alertname"].startswith("EngineL1")])
            assert not [alert for alert in _alerts(url, places[1]) if alert["labels"]["severity"] == "critical"]
            _read_by_the_command(diagnose, url, places)


def _verdict_of(url: str, instance: str, bottleneck: str) -> None:
    series = f'rank:diagnoser_verdict:{WINDOW}s{{instance="{instance}",bottleneck="{bottleneck}"}}'
    lasted = WINDOW + 6  # the command looks at a window that ended 5 s ago
    query = f"sum by (instance) (count_over_time({series}[{lasted}s])) >= {lasted - 1}"

    def ask() -> list[Any]:
        answer = httpx.get(f"{url}/api/v1/query", params={"query": query}, trust_env=False).json()
        return list(answer["data"]["result"])

    eventually(ask)


def _alerts(url: str, instance: str) -> list[dict[str, Any]]:
    found = httpx.get(f"{url}/api/v1/alerts", trust_env=False).json()["data"]["alerts"]
    return [alert for alert in found if alert["labels"]["instance"] == instance]


def _read_by_the_command(diagnose: Diagnose, url: str, places: list[str]) -> None:
    ran = diagnose("--prometheus", url, "--window", f"{WINDOW}s", "--format", "jsonl")
    found = {one["engine"]["target"]: one for one in map(json.loads, ran.out.splitlines())}
    assert found[places[0]]["verdict"]["bottleneck"] == "l1" and found[places[1]]["verdict"]["bottleneck"] == "none"
    assert found[places[1]]["engine"]["family"] == "vllm"
    assert "by the recording rules" in ran.err and "one query" in ran.err
