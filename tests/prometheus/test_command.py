"""`diagnose --prometheus URL` as a person uses it: a fleet, a moment in the past, a scraper at work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from jsonschema import Draft202012Validator
from ran import Ran

from diagnoser.outputs.contract import SCHEMA
from diagnoser.sources.mock import MockEngine
from diagnoser.sources.recording import open_recording

from .conftest import FLEET_END, KILLED, PREEMPTING, RECORDINGS, SGLANG, SGLANG_RANKS, TWO_RANKS, bare, stored
from .servers import prometheus, victoria

Diagnose = Callable[..., Ran]
WHOLE = ("--at", FLEET_END, "--window", "30s")


def test_a_fleet_worst_first(diagnose: Diagnose, fleet: str) -> None:
    ran = diagnose("--prometheus", fleet, *WHOLE)
    table = ran.out.split("\n\n")[0].splitlines()
    assert ran.code == 2 and ran.err == ""
    assert table[0].split()[:2] == ["engine", "verdict"] and len(table) >= 8
    assert all(any(name[-5:] in line for line in table) for name in (PREEMPTING, TWO_RANKS, SGLANG, KILLED))
    assert "BOUND" in table[1] and "NO BOTTLENECK" not in " ".join(table[1:4])
    assert "L1-BOUND (preempting)" in ran.out and "L1-BOUND (reservation)" in ran.out
    assert f"{KILLED} could not be scraped by" in " ".join(ran.out.split())
    note = " ".join(ran.out.split("Note")[1].split())
    assert note.startswith(
        f"from {fleet.removeprefix('http://')}: 30 s up to 2026-11-29 18:15:24 UTC; 5 engines, 7 quer"
    )


def test_json_follows_the_schema(diagnose: Diagnose, fleet: str) -> None:
    ran = diagnose("--prometheus", fleet, *WHOLE, "--format", "json")
    report = json.loads(ran.out)
    schema = json.loads(SCHEMA.read_text())
    Draft202012Validator({**schema, "$ref": "#/$defs/report"}).validate(report)
    assert len(report["diagnoses"]) == 7 and "18:15:24 UTC" in report["notes"][0]
    assert f"diagnose: {report['notes'][0]}" in ran.err


@pytest.mark.parametrize(
    ("at", "tz", "shown"),
    [
        ("2026-11-29T19:15:24+01:00", "UTC", "2026-11-29 18:15:24 UTC;"),
        ("2026-11-29 19:15:24", "Europe/Berlin", "2026-11-29 19:15:24 CET (18:15:24 UTC);"),
        (f"{FLEET_END:.0f}", "Asia/Kolkata", "2026-11-29 23:45:24 IST (18:15:24 UTC);"),
    ],
)
def test_the_same_moment_written_differently(diagnose: Diagnose, fleet: str, at: str, tz: str, shown: str) -> None:
    ran = diagnose("--prometheus", fleet, "--at", at, "--tz", tz, "--window", "30s", "--format", "jsonl")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert {one["at"] for one in found} == {FLEET_END} and shown in ran.err


def test_only_what_matches(diagnose: Diagnose, fleet: str) -> None:
    matches = ("--match", 'job="sglang"', "--match", '{model_name!="x"}')
    ran = diagnose("--prometheus", fleet, *WHOLE, *matches, "--format", "jsonl")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert [one["engine"]["target"] for one in found] == [SGLANG, SGLANG_RANKS, SGLANG_RANKS]
    assert all(one["l1"]["capacity_tokens"] for one in found), "page labels in --match cost no other series"


def test_facts_count(diagnose: Diagnose, fleet: str) -> None:
    words = (*WHOLE, "--match", f'instance="{PREEMPTING}"', "--fact", "max_num_seqs=64", "--format", "jsonl")
    (found,) = map(json.loads, diagnose("--prometheus", fleet, *words).out.splitlines())
    assert found["facts"]["max_num_seqs"]["value"] == 64


@pytest.mark.parametrize(("later", "window"), [(600, "1m"), (100, "5m")])
def test_engines_that_are_scraped_no_more_are_named(diagnose: Diagnose, fleet: str, later: int, window: str) -> None:
    """Nothing in the window but the hour before knows them, or nothing for more than a minute: no verdict of today."""
    ran = diagnose("--prometheus", fleet, "--at", FLEET_END + later, "--window", window)
    said = " ".join((ran.out + ran.err).split())
    assert ran.code == 3 and f"no more for a minute, so not shown: {SGLANG}, {SGLANG_RANKS}, " in said
    assert "BOUND" not in said


def test_victoria_cuts_labels_by_default(diagnose: Diagnose, tmp_path: Path) -> None:
    """Without pod and namespace the cut hits vllm:cache_config_info alone; the reader is told."""
    with victoria(tmp_path, [one for one in stored() if one.recorded.name == PREEMPTING], labels=30) as url:
        ran = diagnose("--prometheus", url, "--at", bare(PREEMPTING).times[-1], "--window", "30s", "--format", "jsonl")
    (found,) = map(json.loads, ran.out.splitlines())
    assert found["l1"]["capacity_tokens"] is None and found["verdict"]["bottleneck"] == "l1"
    assert "1 vLLM engines show no pool size; VictoriaMetrics cuts the labels" in ran.err


CONFIG = """
global: {{scrape_interval: 500ms, scrape_timeout: 400ms}}
scrape_configs:
  - job_name: llm
    static_configs: [{{targets: ["{engine}"], labels: {{engine: llm-a, zone: z1}}}}]
  - job_name: dead
    static_configs: [{{targets: ["127.0.0.1:9"]}}]
"""


def wait_until(url: str, condition: str) -> None:
    """A Prometheus begins to scrape some 5 s after its start."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if httpx.post(f"{url}/api/v1/query", data={"query": condition}, trust_env=False).json()["data"]["result"]:
            return
        time.sleep(0.2)
    raise AssertionError(f"never true: {condition}")


def test_a_real_scrape_and_a_real_death(diagnose: Diagnose, tmp_path: Path) -> None:
    """Prometheus scrapes two ranks live (names, staleness markers and exported_engine are its own); then they die."""
    mock = MockEngine(open_recording(RECORDINGS / f"{TWO_RANKS}.tar.xz").targets[0], speed=5.0)
    mock.start()
    engine = mock.url.removeprefix("http://").removesuffix("/metrics")
    with prometheus(tmp_path, config=CONFIG.format(engine=engine)) as url:
        wait_until(url, 'count_over_time(up{job="llm"}[5s]) >= 10')
        alive = time.time()
        mock.stop()
        wait_until(url, 'sum_over_time((1 - up{job="llm"})[5s:500ms]) >= 4')
        words = ("--prometheus", url, "--window", "5s", "--format", "jsonl")
        before = [json.loads(line) for line in diagnose(*words, "--at", f"{alive:.3f}").out.splitlines()]
        after = [json.loads(line) for line in diagnose(*words, "--at", f"{time.time():.3f}").out.splitlines()]
        asked = {"query": 'vllm:num_requests_running{exported_engine="0"}', "time": f"{alive:.3f}"}
        (kept,) = httpx.post(f"{url}/api/v1/query", data=asked, trust_env=False).json()["data"]["result"]
    assert kept["metric"]["engine"] == "llm-a", "the target label has pushed the page's aside"
    assert [one["engine"]["rank"] for one in before] == ["0", "1"] and {one["engine"]["target"] for one in before} == {
        engine
    }
    assert all(8 <= one["scrapes"] <= 11 and one["l1"]["capacity_tokens"] for one in before)
    assert {one["verdict"]["bottleneck"] for one in after} == {"unreachable"}
    assert f"{engine} could not be scraped by" in after[0]["verdict"]["because"][0]


def test_help(diagnose: Diagnose) -> None:
    ran = diagnose("--prometheus", "x", "--help")
    assert ran.code == 0 and ran.out.startswith("usage: diagnose --prometheus URL [options]")
    assert "examples:\n  diagnose --prometheus" in ran.out and max(map(len, ran.out.splitlines())) < 80
    assert "diagnose --prometheus URL --help" in diagnose("--help").out
