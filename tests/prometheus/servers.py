"""Real servers for tests: Debian's Prometheus and VictoriaMetrics on free loopback ports, filled with recordings."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.fleet.process import await_ready, free_port
from diagnoser.sources.recording import RecordedTarget

PACKAGES = {
    "prometheus": "prometheus", "promtool": "prometheus", "victoria-metrics": "victoria-metrics",
    "vmalert": "victoria-metrics",
}  # fmt: skip
READY_SECONDS = 20.0


def binary(name: str) -> str:
    """Its path. A missing one fails the test: without real servers nothing here is shown."""
    found = shutil.which(name)
    assert found, f"{name} is missing: apt-get install -y --no-install-recommends {PACKAGES[name]}"
    return found


@dataclass(frozen=True)
class Stored:
    """One recording as a server would have scraped it: with the labels of its target, and `up`."""

    recorded: RecordedTarget
    labels: Mapping[str, str]
    up: bool = True
    extra: Mapping[str, str] = field(default_factory=dict)
    """Labels that only the page's series have."""
    underscores: bool = False
    shift: float = 0.0
    """Seconds that its times are moved by, so that several recordings become one fleet."""

    def lines(self, to_stamp: float) -> Iterator[str]:
        """Exposition lines with timestamps in seconds * `to_stamp`."""
        for page in self.recorded.pages():
            at = page.at + self.shift
            stamp = f"{at * to_stamp:.0f}" if to_stamp > 1 else f"{at:.3f}"
            if self.up:
                yield f"up{{{_joined('', self.labels)}}} {float(page.text is not None):g} {stamp}"
            for line in (page.text or "").splitlines():
                if line and line[0] != "#":
                    yield self._line(line, stamp)

    def _line(self, line: str, stamp: str) -> str:
        series, _, value = line.rpartition(" ")
        name, _, inner = series.partition("{")
        name = name.replace(":", "_", 1) if self.underscores else name
        return f"{name}{{{_joined(inner.removesuffix('}'), {**self.labels, **self.extra})}}} {value} {stamp}"


def _joined(inner: str, labels: Mapping[str, str]) -> str:
    return ",".join([*([inner.strip(",")] if inner else []), *(f'{key}="{value}"' for key, value in labels.items())])


def by_time(stored: Iterable[Stored], to_stamp: float) -> str:
    """All lines in time order, as promtool wants them."""
    lines = [line for one in stored for line in one.lines(to_stamp)]
    lines.sort(key=lambda line: float(line.rpartition(" ")[2]))
    return "\n".join(lines) + "\n"


@contextmanager
def prometheus(folder: Path, stored: Iterable[Stored] = (), config: str = "") -> Iterator[str]:
    """A Prometheus that holds the recordings at their own times; gives its URL."""
    data, settings = folder / "data", folder / "prometheus.yml"
    data.mkdir(parents=True)
    settings.write_text(config or "global: {}\n")
    text = by_time(stored, 1)
    if text.strip():
        (folder / "in.om").write_text(text + "# EOF\n")
        tool = [binary("promtool"), "tsdb", "create-blocks-from", "openmetrics", folder / "in.om", data]
        made = subprocess.run(tool, capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
    port = free_port()
    words = [binary("prometheus"), f"--config.file={settings}", f"--storage.tsdb.path={data}"]
    words += ["--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with started(words, folder / "prometheus.log", f"http://127.0.0.1:{port}", "/-/ready") as url:
        yield url


@contextmanager
def victoria(folder: Path, stored: Iterable[Stored] = (), labels: int = 60) -> Iterator[str]:
    """A VictoriaMetrics that holds the recordings at their own times; gives its URL.

    By default it cuts series to 30 labels, and vllm:cache_config_info has 37.
    """
    port = free_port()
    words = [binary("victoria-metrics"), f"-storageDataPath={folder / 'vm'}", f"-httpListenAddr=127.0.0.1:{port}"]
    words += ["-retentionPeriod=100y", "-loggerLevel=ERROR", f"-maxLabelsPerTimeseries={labels}"]
    folder.mkdir(parents=True, exist_ok=True)
    with started(words, folder / "vm.log", f"http://127.0.0.1:{port}", "/health") as url:
        for one in stored:
            body = "\n".join(one.lines(1000)) + "\n"
            sent = httpx.post(f"{url}/api/v1/import/prometheus", content=body, timeout=60, trust_env=False)
            assert sent.status_code == 204, sent.text
        assert httpx.get(f"{url}/internal/force_flush", timeout=60, trust_env=False).status_code == 200
        yield url


@contextmanager
def started(words: list[str], log: Path, url: str, health: str) -> Iterator[str]:
    """A server that runs until the block ends; gives its URL once it answers."""
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
        try:
            await_ready(process, url + health, log, READY_SECONDS)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
