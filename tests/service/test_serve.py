"""The service as a whole: verdicts of live engines, reloads, stops, restarts; as an object and as a process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus.servers import prometheus
from ran import Ran

from diagnoser.data import data_dir
from diagnoser.model import EngineId, Target, Window
from diagnoser.pipeline import History, wanted_metrics
from diagnoser.rulebook.load import load as load_rules
from diagnoser.service.board import Key
from diagnoser.service.config import load
from diagnoser.service.evaluator import judge
from diagnoser.service.service import Service
from diagnoser.sources.base import to_scrape
from diagnoser.sources.exposition import PageParser
from service.poll_kit import GIVE_UP_SECONDS, HEALTHY, PREEMPTING, TWO_RANKS, address, engine, page, until

Diagnose = Callable[..., Ran]
FAST = "interval: 50ms\n    timeout: 2s\n"


def written(folder: Path, *targets: str, more: str = "") -> Path:
    """A configuration of static targets, evaluated quickly."""
    path = folder / "diagnoser.yaml"
    entry = f"  - static: [{', '.join(targets)}]\n    {FAST}" if targets else ""
    path.write_text(
        f"targets:\n{entry or '  []'}\nwindow: 2s\nkeep: 4s\nevaluate_every: 200ms\n"
        f"web: {{listen: '127.0.0.1:0'}}\nhistory: {{path: h.db}}\n{more}"
    )
    return path


@asynccontextmanager
async def serving(path: Path) -> AsyncIterator[Service]:
    """The service of that file."""
    service = Service(lambda: load(path), path.parent, path)
    await service.start()
    try:
        yield service
    finally:
        await service.stop(2.0)


def verdict_of(service: Service, target: str, rank: str = "0") -> str:
    entry = service.board.get(Key(target, rank))
    return "" if entry is None else entry.diagnosis.verdict.bottleneck


async def settled(service: Service, name: str, verdict: str) -> None:
    """That is its verdict, and it is stored."""
    await until(lambda: verdict_of(service, name) == verdict)
    rounds = service.stats.evaluations
    await until(lambda: service.stats.evaluations > rounds)


# ---------------------------------------------------------------- as an object


def test_verdicts_of_live_engines_each_rank(tmp_path: Path) -> None:
    async def scenario(bound: str, ranks: str, dead: str) -> None:
        told: list[int] = []
        async with serving(written(tmp_path, bound, ranks, dead)) as service:
            service.listeners.append(lambda changes: told.extend(one.id for one in changes))
            await until(lambda: verdict_of(service, bound) == "l1" and verdict_of(service, ranks, "1"))
            await settled(service, dead, "unreachable")
            assert service.ready and service.history.healthy
            assert {state.name: state.healthy for state in service.targets()} == {bound: True, ranks: True, dead: False}
            stored = await service.history.transitions(0, time.time() + 1)
            assert sorted(told) == told and {one.id for one in stored} >= set(told)
            assert (service.stats.polls, service.stats.evaluations) > (10, 1)

    with engine(PREEMPTING) as one, engine(TWO_RANKS) as two:
        asyncio.run(scenario(address(one), address(two), "127.0.0.1:9"))


def test_the_same_verdict_after_a_restart_is_no_change(tmp_path: Path) -> None:
    async def scenario(name: str) -> None:
        path = written(tmp_path, name)
        async with serving(path) as service:
            await settled(service, name, "unreachable")
            (first,) = await service.history.transitions(0, time.time() + 1)
        async with serving(path) as service:
            await settled(service, name, "unreachable")
            assert await service.history.transitions(0, time.time() + 1) == [first]
            entry = service.board.get(Key(name, "0"))
            assert entry is not None and entry.since == first.at

    asyncio.run(scenario("127.0.0.1:9"))


def test_a_reload_takes_over_or_changes_nothing(tmp_path: Path) -> None:
    async def scenario(a: str, b: str) -> None:
        path = written(tmp_path, a)
        async with serving(path) as service:
            await until(lambda: verdict_of(service, a))
            kept = service.engines._poller.targets[a]
            before = service.config
            path.write_text("targets:\n- static: [a:1]\n  intervall: 1s\n")
            result = await service.reload()
            assert not result.ok and "diagnoser.yaml:3: targets[0].intervall: unknown key" in result.reason
            assert service.config is before and service.last_reload is result
            written(tmp_path, a, more="rules: [nowhere]\n")
            assert "no such folder" in (await service.reload()).reason and service.config is before
            written(tmp_path, a, more="web: {listen: '127.0.0.1:1'}\n".replace("web", "log"))
            assert not (await service.reload()).ok and service.config is before
            path.write_text(path.read_text().replace("log: {listen: '127.0.0.1:1'}\n", "").replace(":0'", ":1'"))
            refused = await service.reload()
            assert not refused.ok and "restart" in refused.reason and service.config is before
            written(tmp_path, a)
            text = path.read_text().replace("targets:\n", f"targets:\n  - static: ['{b}']\n    {FAST}")
            path.write_text(text)
            assert (await service.reload()).ok
            await until(lambda: verdict_of(service, b))
            assert service.engines._poller.targets[a] is kept, "who stays is not even interrupted"
            written(tmp_path, b)
            assert (await service.reload()).ok
            await until(lambda: service.board.get(Key(a, "0")) is None)
            assert verdict_of(service, b)
            assert (service.stats.reloads, service.stats.reload_failures) == (6, 4)

    with engine(PREEMPTING) as one, engine(HEALTHY) as two:
        asyncio.run(scenario(address(one), address(two)))


def test_targets_of_a_file_come_and_go(tmp_path: Path) -> None:
    async def scenario(a: str, b: str) -> None:
        path = written(tmp_path)
        path.write_text(
            path.read_text().replace("  []", f"  - file_sd: ['t/*.json']\n    labels: {{dc: x}}\n    {FAST}")
        )
        (tmp_path / "t").mkdir()
        listed = tmp_path / "t" / "a.json"
        listed.write_text(json.dumps([{"targets": [a], "labels": {"team": "chat"}}]))
        async with serving(path) as service:
            await until(lambda: verdict_of(service, a))
            assert service.labels(a) == {"dc": "x", "team": "chat"} == service.labels_of(Key(a, "0"))
            assert [(one.kind, one.targets, one.problem) for one in service.sources()] == [("file_sd", 1, "")]
            listed.write_text(json.dumps([{"targets": [b]}]))
            await until(lambda: verdict_of(service, b) and service.board.get(Key(a, "0")) is None)
            listed.write_text("[")
            await until(lambda: service.sources()[0].problem)
            assert [state.name for state in service.targets()] == [b]

    with engine(PREEMPTING) as one, engine(HEALTHY) as two:
        asyncio.run(scenario(address(one), address(two)))


def test_a_verdict_of_a_time_that_is_still_kept(tmp_path: Path) -> None:
    async def scenario(name: str) -> None:
        async with serving(written(tmp_path, name)) as service:
            await until(lambda: service.engines._poller.targets[name].engine.pages > 20)
            now = time.time()
            found = await service.diagnose_at(Key(name, "0"), now - 3600, now)
            assert found is not None and found.at == now and found.scrapes > 10 and found.verdict.bottleneck == "l1"
            assert await service.diagnose_at(Key(name, "0"), now - 3600, now - 1800) is None
            assert await service.diagnose_at(Key("nobody:1", "0"), now - 1, now) is None
            assert await service.diagnose_at(Key(name, "7"), now - 1, now) is None

    with engine(PREEMPTING) as mock:
        asyncio.run(scenario(address(mock)))


def test_engines_of_a_real_prometheus(tmp_path: Path) -> None:
    scrape = "global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}\nscrape_configs:\n- job_name: llm\n"
    scrape += "  static_configs:\n  - {{targets: ['{}'], labels: {{pod: p1}}}}\n"

    async def scenario(name: str, url: str, stop: Callable[[], Any]) -> None:
        path = written(tmp_path)
        source = f"  - prometheus: {{url: '{url}', match: 'job=\"llm\"', window: 5s, interval: 500ms, delay: 0.5s}}\n"
        path.write_text(path.read_text().replace("  []", source + "    labels: {dc: x}"))
        async with serving(path) as service:
            await until(lambda: verdict_of(service, name) == "l1")
            assert service.labels(name) == {"job": "llm", "instance": name, "pod": "p1", "dc": "x"}
            (state,) = service.targets()
            assert (state.healthy, state.url) == (True, url)
            found = None
            async with asyncio.timeout(GIVE_UP_SECONDS):
                while found is None:  # the server itself has only just begun
                    now = time.time()
                    found = await service.diagnose_at(Key(name, "0"), now - 6, now - 1)
            assert found.scrapes > 0 and found.engine.target == name
            stop()
            await until(lambda: verdict_of(service, name) == "unreachable")
            assert service.sources()[0].problem
            assert await service.diagnose_at(Key(name, "0"), now - 6, now - 1) is None

    with engine(PREEMPTING) as mock, prometheus(tmp_path / "prom", config=scrape.format(address(mock))) as url:
        asyncio.run(scenario(address(mock), url, lambda: _end(url)))


def _end(url: str) -> None:
    """Ends the Prometheus that listens there."""
    port = url.rpartition(":")[2].encode()
    for found in Path("/proc").glob("[0-9]*/cmdline"):
        words = found.read_bytes().split(b"\0")
        if words[0].endswith(b"prometheus") and any(word.endswith(b"127.0.0.1:" + port) for word in words):
            os.kill(int(found.parent.name), signal.SIGKILL)


def test_a_window_that_cannot_be_judged_costs_only_its_own_verdict() -> None:
    history = History("good:1", 60)
    parse = PageParser(wanted_metrics()).parse
    for at in range(10):
        history.add(to_scrape(Target("good:1"), float(at), page(since=at).decode(), parse))
    bad = Window(EngineId("vllm", "bad:1"), 9.0, 10.0, ("no snapshot",))  # type: ignore[arg-type]
    found, failed = judge([bad, *history.windows(9.0, 10.0)], load_rules([data_dir("rules")]))
    assert [one.engine.target for one in found] == ["good:1"] and failed == ["bad:1"]


# ---------------------------------------------------------------- as a process


class Process:
    """`diagnose serve` with JSON logs."""

    def __init__(self, *words: object, user: Sequence[str] = ()) -> None:
        argv = [*user, sys.executable, "-m", "diagnoser", "serve", *map(str, words), "--log-format", "json"]
        if "--listen" not in words and "--config" not in words:
            argv += ["--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = f"http://{self.line('listening')['address']}"

    def line(self, message: str) -> dict[str, Any]:
        """The next log line that begins so."""
        assert self.process.stderr is not None
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if line.startswith("{") and json.loads(line)["message"].startswith(message):
                return dict(json.loads(line))
        raise AssertionError(f"ended without {message!r}:\n{''.join(lines)[-3000:]}")

    def get(self, path: str) -> Any:
        return httpx.get(self.url + path, trust_env=False, timeout=20).json()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and the rest of its log."""
        self.process.send_signal(number)
        _, rest = self.process.communicate(timeout=30)
        return self.process.returncode, rest


@contextmanager
def process(*words: object, user: Sequence[str] = ()) -> Iterator[Process]:
    running = Process(*words, user=user)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


QUICK = ("--window", "2s", "--interval", "100ms", "--evaluate-every", "500ms")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_without_a_configuration_it_just_works_and_stops_in_good_order(tmp_path: Path, number: int) -> None:
    with engine(PREEMPTING) as mock, process(address(mock), *QUICK, "--data", tmp_path / "d") as running:
        changed = running.line("verdict changed")
        assert changed["engine"] == f"{address(mock)}/0" and changed["level"] == "info"
        assert [one["id"] for one in running.get("/api/v1/engines")["engines"]] == [f"{address(mock)}/0"]
        code, rest = running.end(number)
        assert code == 0 and '"stopped"' in rest and "Traceback" not in rest
    assert (tmp_path / "d" / "diagnoser.db").exists() and not (tmp_path / "d" / "diagnoser.db-wal").exists()


NOBODY = 65534
MAY_READ = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
"""Where this Python lies may be closed to others."""


def test_it_needs_no_privileges(tmp_path: Path) -> None:
    """As nobody, who may write nowhere but in the history's folder."""
    (tmp_path / "d").mkdir()
    user: Sequence[str] = ()
    if os.getuid() == 0:
        os.chown(tmp_path / "d", NOBODY, NOBODY)
        user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", *MAY_READ)
    with engine(PREEMPTING) as mock, process(address(mock), *QUICK, "--data", tmp_path / "d", user=user) as running:
        assert f"Uid:\t{NOBODY if user else os.getuid()}" in Path(f"/proc/{running.process.pid}/status").read_text()
        running.line("verdict changed")
        assert running.get("/api/v1/status")["history"] == {"healthy": True, "problem": ""}
        code, rest = running.end()
        assert code == 0 and "Traceback" not in rest
    assert (tmp_path / "d" / "diagnoser.db").stat().st_size > 0


def test_hangup_reloads_and_a_bad_file_changes_nothing(tmp_path: Path) -> None:
    with engine(PREEMPTING) as one, engine(HEALTHY) as two:
        path = written(tmp_path, address(one))
        with process("--config", path) as running:
            running.line("verdict changed")
            written(tmp_path, address(one), address(two))
            running.process.send_signal(signal.SIGHUP)
            assert running.line("configuration reloaded")["targets"] == 2
            path.write_text("widow: 1s\n")
            running.process.send_signal(signal.SIGHUP)
            said = running.line("configuration not reloaded")
            assert said["level"] == "error" and "diagnoser.yaml:1: widow: unknown key" in said["message"]
            running.line("verdict changed")
            assert running.end()[0] == 0


def test_killed_and_started_again_it_knows_what_was(tmp_path: Path) -> None:
    words = ("127.0.0.1:9", *QUICK, "--data", tmp_path)
    with process(*words) as running:
        running.line("verdict changed")
        before = running.get("/api/v1/transitions")
        assert running.end(signal.SIGKILL)[0] == -signal.SIGKILL
    with process(*words) as running:
        again = running.get("/api/v1/transitions")
        assert json.dumps(before["transitions"]) == json.dumps(again["transitions"]) and before["transitions"]
        _, rest = running.end()
        assert "history" not in rest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to watch"),
        (("--config", "/nowhere/d.yaml"), "cannot be read"),
        (("localhost:8000", "--listen", "0.0.0.0:9180"), "can be reached from other machines"),
        (("localhost:8000", "--window", "1s"), "fewer than two pages"),
        (("localhost:99999",), "no usable host or port"),
        (("localhost:8000", "--fact", "nonsense=1"), "no such fact"),
    ],
)
def test_usage_errors(diagnose: Diagnose, words: tuple[str, ...], said: str) -> None:
    ran = diagnose("serve", *words)
    assert ran.code == 64 and said in ran.err and ran.out == ""


def test_what_cannot_start_says_why_and_leaves_nothing_behind(diagnose: Diagnose, tmp_path: Path) -> None:
    with engine(HEALTHY) as mock:
        taken = diagnose("serve", address(mock), "--listen", address(mock), "--data", tmp_path)
    assert taken.code == 64 and address(mock) in taken.err and "Traceback" not in taken.err
    rules = diagnose("serve", "--config", written(tmp_path, "127.0.0.1:9", more="rules: [x]\n"))
    assert rules.code == 64 and "no such folder" in rules.err and "Traceback" not in rules.err
