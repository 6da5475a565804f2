"""Recordings served as engines, `diagnose serve` beside them, and a real Prometheus with our rules that scrapes all."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from prometheus.servers import free_port, prometheus, started
from story import BOOK

from diagnoser.promql.export import RECORDING, Export, files
from diagnoser.sources.mock import MockEngine

from .clips import RECORDINGS, clip

WINDOW, STEP = 60, 5.0
"""Seconds, of the rules as of the service; the dashboards are told so by their variable."""
NAMED = "1m"
"""The window in the names of recorded series."""
SPEED = 0.4
"""Slower than recorded: a clip must not begin anew while the tests run, which looks like a restart."""
GIVE_UP_SECONDS = 240.0


@dataclass(frozen=True)
class Engine:
    """One that is scraped: its address, and the metrics that its pages have."""

    name: str
    address: str
    metrics: frozenset[str]

    @property
    def family(self) -> str:
        """The job."""
        return "vllm" if "vllm" in self.name else "sglang"


@dataclass(frozen=True)
class Lab:
    """All that runs."""

    url: str
    service: str
    engines: tuple[Engine, ...]
    client: httpx.Client
    """One for all queries: a new one takes longer than most of them."""

    def get(self, path: str, **parameters: Any) -> Any:
        """`data` of an answer of Prometheus."""
        found = self.client.get(f"{self.url}/api/v1/{path}", params=parameters)
        assert found.status_code == 200, f"{parameters}: {found.text}"
        return found.json()["data"]

    def asked(self, expr: str, instant: bool) -> list[Any]:
        """What a panel would show of the last seconds."""
        now = time.time()
        if instant:
            return list(self.get("query", query=expr, time=now)["result"])
        return list(self.get("query_range", query=expr, start=now - WINDOW, end=now, step=WINDOW / 2)["result"])

    def recorded(self, engine: Engine) -> list[dict[str, str]]:
        """Labels of the series that the rules have made of it lately."""
        found = self.get("query", query=f'{{__name__=~"rank:.*",instance="{engine.address}"}}', time=time.time())
        return [one["metric"] for one in found["result"]]


def until(work: Callable[[], list[str]]) -> None:
    """Again and again, until there are no complaints: samples take as long as they take."""
    end = time.monotonic() + GIVE_UP_SECONDS
    while complaints := work():
        assert time.monotonic() < end, "\n".join(complaints)
        time.sleep(1)


def _settings(folder: Path, engines: tuple[Engine, ...], service: str) -> str:
    (folder / RECORDING).write_text(files(BOOK, Export(WINDOW, STEP))[RECORDING])
    jobs = {family: [one.address for one in engines if one.family == family] for family in ("vllm", "sglang")}
    scraped = [
        {"job_name": job, "static_configs": [{"targets": found}]}
        for job, found in {**jobs, "diagnoser": [service]}.items()
    ]
    every = {"scrape_interval": f"{STEP:g}s", "scrape_timeout": f"{STEP:g}s"}
    return json.dumps({"global": every, "rule_files": [str(folder / RECORDING)], "scrape_configs": scraped})


@contextmanager
def serving(folder: Path, settings: Mapping[str, Any]) -> Iterator[str]:
    """`diagnose serve`, with its address."""
    folder.mkdir(parents=True, exist_ok=True)
    address = f"127.0.0.1:{free_port()}"
    path = folder / "diagnoser.yaml"
    path.write_text(json.dumps({**settings, "web": {"listen": address}}))
    words = [sys.executable, "-m", "diagnoser", "serve", "--config", str(path)]
    with started(words, folder / "serve.log", f"http://{address}", "/healthz"):
        yield address


@contextmanager
def running(folder: Path) -> Iterator[Lab]:
    """Everything."""
    with ExitStack() as stack:
        engines = []
        for one in map(clip, RECORDINGS):
            mock = stack.enter_context(MockEngine(one, loop=True, speed=SPEED))
            engines.append(Engine(one.name, mock.url.split("/")[2], one.metrics))
        addresses = [one.address for one in engines]
        target = {"static": addresses, "interval": "5s", "facts": {"max_num_seqs": 256, "max_running_requests": 256}}
        asked = {"targets": [target], "window": f"{WINDOW}s", "evaluate_every": "5s"}
        service = stack.enter_context(serving(folder / "service", asked))
        config = _settings(folder, tuple(engines), service)
        url = stack.enter_context(prometheus(folder / "prometheus", config=config))
        client = stack.enter_context(httpx.Client(timeout=60, trust_env=False))
        yield Lab(url, f"http://{service}", tuple(engines), client)
