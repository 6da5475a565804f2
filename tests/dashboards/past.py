"""A Prometheus that holds recordings and what our rules record of them, at fixed times: it always answers the same."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from prometheus.servers import Stored, binary, free_port, started
from story import BOOK

from diagnoser.model import Fact, Target
from diagnoser.pipeline import History, diagnose, wanted_metrics
from diagnoser.promql.export import RECORDING, Export, files
from diagnoser.service.board import Entry, key_of
from diagnoser.service.enginemetrics import engine_text
from diagnoser.sources.base import to_scrape
from diagnoser.sources.exposition import PageParser
from diagnoser.sources.recording import RecordedTarget, open_recording

from .clips import DATA
from .lab import STEP, WINDOW

END = 1_795_976_100.0
"""An end that lets every recording lie within one two-hour block of Prometheus."""
SEVERAL = re.compile(r'__name__=~"(rank:[^"]*)"')
Rule = Mapping[str, Any]
Series = Mapping[str, Any]


def recorded(path: str) -> RecordedTarget:
    """Of tests/data, a page every five seconds; one of few pages says the same again and again."""
    (target,) = open_recording(DATA / f"{path}.tar.xz").targets
    polls = [target._polls[stamp] for stamp in sorted(target._polls)]
    few = len(polls) < 5
    pages = [one for one in polls for _ in range(10)] if few else polls[:: int(STEP)]
    stamped = {int((END - STEP * back) * 1000): one for back, one in enumerate(reversed(pages))}
    return RecordedTarget(path.rpartition("/")[2], {}, stamped)


@dataclass
class Past:
    """The server, and what it has been given."""

    folder: Path
    names: Sequence[str]
    client: httpx.Client
    url: str = ""
    blocks: int = 0

    def add(self, lines: Sequence[str]) -> None:
        """Samples, as a block."""
        lines = sorted(lines, key=lambda line: float(line.rpartition(" ")[2]))
        self.blocks += 1
        path = self.folder / f"{self.blocks}.om"
        path.write_text("\n".join([*lines, "# EOF\n"]))
        words = [binary("promtool"), "tsdb", "create-blocks-from", "openmetrics", path, self.folder / "data"]
        made = subprocess.run(words, capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr

    @contextmanager
    def serving(self) -> Iterator[None]:
        """With all blocks that were added."""
        settings = self.folder / "prometheus.yml"
        settings.write_text("global: {}\n")
        port = free_port()
        words = [binary("prometheus"), f"--config.file={settings}", f"--storage.tsdb.path={self.folder / 'data'}"]
        words += ["--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
        # Imported blocks have no staleness markers: a series ends with its last sample.
        words.append(f"--query.lookback-delta={STEP * 1000 - 100:.0f}ms")
        with started(words, self.folder / "prometheus.log", f"http://127.0.0.1:{port}", "/-/ready") as self.url:
            yield

    def get(self, path: str, **parameters: Any) -> Any:
        """`data` of an answer."""
        found = self.client.get(f"{self.url}/api/v1/{path}", params=parameters)
        assert found.status_code == 200, f"{parameters}: {found.text}"
        return found.json()["data"]

    def asked(self, expr: str, instant: bool) -> list[Series]:
        """As a panel of the last minute would."""
        if instant:
            return list(self.get("query", query=expr, time=END)["result"])
        return list(self.get("query_range", query=expr, start=END - WINDOW, end=END, step=STEP)["result"])


def _levels(rules: Sequence[Rule]) -> Iterator[list[Rule]]:
    """Rules whose series nobody waits for, then those that read only these, and so on."""
    names = {rule["record"] for rule in rules}
    needs: dict[str, set[str]] = {name: set() for name in names}
    for rule in rules:
        patterns = SEVERAL.findall(rule["expr"])
        read = {name for name in names if name in rule["expr"] or any(re.fullmatch(one, name) for one in patterns)}
        needs[rule["record"]] |= read - {rule["record"]}
    done: set[str] = set()
    while len(done) < len(needs):
        ready = {name for name, wanted in needs.items() if name not in done and wanted <= done}
        assert ready, set(needs) - done
        yield [rule for rule in rules if rule["record"] in ready]
        done |= ready


def _lines(rule: Rule, found: Sequence[Series]) -> Iterator[str]:
    for series in found:
        labels = {**series["metric"], **rule.get("labels", {})}
        labels.pop("__name__", None)
        inner = ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items() if value)
        yield from (f"{rule['record']}{{{inner}}} {value} {at}" for at, value in series["values"])


def _service(target: RecordedTarget, job: str) -> Iterator[str]:
    """What `diagnose serve` would have exported at the end."""
    parser, name = PageParser(wanted_metrics()), target.name
    limit = {"vllm": "max_num_seqs", "sglang": "max_running_requests"}[job]
    history = History(name, float(WINDOW), {limit: Fact(limit, 256.0, "test")})
    for page in target.pages():
        history.add(to_scrape(Target(name), page.at, page.text or "", parser.parse))
    told = [Entry(key_of(one), one, END, 0) for one in diagnose(history.windows(END, float(WINDOW)), BOOK)]
    for line in engine_text(told).splitlines():
        if not line.startswith("#"):
            yield from (f"{line} {END - STEP * back}" for back in range(int(WINDOW / STEP) + 1))


@contextmanager
def past(folder: Path, paths: Sequence[str]) -> Iterator[Past]:
    """Of these recordings."""
    (folder / "data").mkdir(parents=True)
    with httpx.Client(timeout=60, trust_env=False) as client:
        one = Past(folder, [path.rpartition("/")[2] for path in paths], client)
        _fill(one, paths)
        with one.serving():
            yield one


def _fill(one: Past, paths: Sequence[str]) -> None:
    kept = [(recorded(path), "vllm" if "vllm" in path else "sglang") for path in paths]
    stored = [Stored(target, {"job": job, "instance": target.name}) for target, job in kept]
    one.add([line for each in stored for line in each.lines(1)])
    one.add([line for target, job in kept for line in _service(target, job)])
    groups = yaml.safe_load(files(BOOK, Export(WINDOW, STEP))[RECORDING])["groups"]
    for level in _levels([rule for group in groups for rule in group["rules"]]):
        with one.serving():
            lines = [line for rule in level for line in _lines(rule, one.asked(rule["expr"], False))]
        if lines:
            one.add(lines)
