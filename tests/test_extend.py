"""A new engine, signal, check and output are one new file each: shown by fictional ones on the search paths."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from story import START

import diagnoser.engines
import diagnoser.outputs
import diagnoser.signals
from diagnoser import pipeline
from diagnoser.data import data_dir
from diagnoser.engines import adapters
from diagnoser.model import Target
from diagnoser.outputs import outputs
from diagnoser.outputs.base import Look, Report
from diagnoser.rulebook.load import load
from diagnoser.signals.base import intervals, signals
from diagnoser.sources.base import to_scrape
from diagnoser.sources.exposition import PageParser

ENGINE = """
from diagnoser.engines.base import EngineAdapter
from diagnoser.model import EngineId, PoolState, Reading, Snapshot

NAMES = {
    "acme:busy": "running_requests", "acme:line": "waiting_requests", "acme:tokens_total": "generation_tokens_total"
}

def snapshots(scrape, facts):
    known = [s for s in scrape.samples if s.name in NAMES]
    found = {NAMES[s.name]: Reading(s.value, s.name) for s in known}
    if not found:
        return ()
    engine, pool = EngineId("acme", scrape.target.name), PoolState(reason="acme has no pool gauge")
    return (Snapshot(engine, scrape.at, found, {}, {}, pool),)

ADAPTER = EngineAdapter("acme", "Acme", ("acme:",), frozenset(NAMES), snapshots)
"""
SIGNAL = """
from diagnoser.signals.base import Signal

def longest(view, params):
    return view.gauge("waiting_requests", max)

SIGNALS = (Signal("acme_line_max", "requests", "longest line", longest),)
"""
CHECK = """
id: acme_line_long
label: long line
kind: checklist
order: 21
question: Is the line longer than one?
yes: {signal: acme_line_max, op: ">", value: 1}
text: {yes: "line up to {acme_line_max:count}", no: "short", unknown: "cannot tell"}
rationale: shown by a test
source: this test
unknown: no gauge
"""
OUTPUT = """
from diagnoser.outputs.base import Output

def render(report, look):
    return " / ".join(d.verdict.bottleneck for d in report.diagnoses) + "\\n"

OUTPUT = Output("oneword", "text/plain", render)
"""


@pytest.fixture
def extended(tmp_path: Path) -> Iterator[Path]:
    """The packages search one folder more each, as if the files lay beside the others."""
    caches = [adapters, signals, intervals, pipeline.wanted_metrics, pipeline.traits, outputs]
    packages = {
        diagnoser.engines: ("acme", ENGINE),
        diagnoser.signals: ("acme_line", SIGNAL),
        diagnoser.outputs: ("oneword", OUTPUT),
    }
    for package, (name, source) in packages.items():
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / f"{name}.py").write_text(source)
        package.__path__.append(str(folder))
    rules = tmp_path / "rules"
    (rules / "checks").mkdir(parents=True)
    (rules / "checks" / "acme_line_long.yaml").write_text(CHECK)
    for cache in caches:
        cache.cache_clear()
    yield rules
    for package, (name, _) in packages.items():
        package.__path__.pop()
        sys.modules.pop(f"{package.__name__}.{name}", None)
    for cache in caches:
        cache.cache_clear()


def test_a_fictional_engine_check_signal_and_output_work_with_one_file_each(extended: Path) -> None:
    target, parser = Target("acme:1"), PageParser(pipeline.wanted_metrics())
    history = pipeline.History(target.name, 60)
    for i in range(4):
        page = f"acme:busy 4\nacme:line {i + 1}\nacme:tokens_total {100 * i}\n"
        history.add(to_scrape(target, START + i, page, parser.parse))
    book = load([data_dir("rules"), extended])
    assert pipeline.rule_problems(book) == ()
    (found,) = pipeline.diagnose(history.windows(START + 3, 3), book)
    assert found.engine.family == "acme"
    check = next(c for c in found.checks if c.id == "acme_line_long")
    assert (check.answer, check.reason) == ("yes", "line up to 4")
    assert outputs()["oneword"].render(Report((found,)), Look()) == f"{found.verdict.bottleneck}\n"


def test_without_the_files_nothing_of_it_is_left() -> None:
    assert "acme" not in {a.family for a in adapters()}
    assert "acme_line_max" not in {s.name for s in signals()}
    assert "acme" not in json.dumps(sorted(pipeline.wanted_metrics()))
