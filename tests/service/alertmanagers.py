"""The real Alertmanager and the real Prometheus, on free loopback ports, for tests."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from prometheus.servers import READY_SECONDS, prometheus

from bench.fleet.process import await_ready, free_port

__all__ = ["Alertmanager", "alertmanager", "free_port", "prometheus_that_alerts"]
BINARY = "prometheus-alertmanager"


class Alertmanager:
    """What it shows."""

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        self.url, self._process = url, process

    @contextmanager
    def away(self) -> Iterator[None]:
        """It answers nobody meanwhile, and forgets nothing."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    async def alerts(self, name: str = "") -> list[dict[str, Any]]:
        """Those that are active now."""
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{self.url}/api/v2/alerts", timeout=10)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()
        return [one for one in found if name in ("", one["labels"]["alertname"])]

    async def one(self, **labels: str) -> dict[str, Any] | None:
        """The alert with these labels."""
        found = [one for one in await self.alerts() if labels.items() <= one["labels"].items()]
        return found[0] if found else None


@contextmanager
def alertmanager(folder: Path, webhook: str = "", port: int = 0) -> Iterator[Alertmanager]:
    """One that sends everything to `webhook` as fast as it can."""
    folder.mkdir(parents=True, exist_ok=True)
    receiver: dict[str, Any] = {"name": "all"}
    if webhook:
        receiver["webhook_configs"] = [{"url": webhook, "send_resolved": True}]
    route = {"receiver": "all", "group_by": ["..."], "group_wait": "100ms", "group_interval": "1s"}
    settings = folder / "alertmanager.yml"
    settings.write_text(json.dumps({"route": {**route, "repeat_interval": "1h"}, "receivers": [receiver]}))
    address = f"127.0.0.1:{port or free_port()}"
    words = [BINARY, f"--config.file={settings}", f"--storage.path={folder / 'data'}", "--cluster.listen-address="]
    words += [f"--web.listen-address={address}", "--log.level=warn"]
    with (folder / "alertmanager.log").open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
        try:
            await_ready(process, f"http://{address}/-/ready", folder / "alertmanager.log", READY_SECONDS)
            yield Alertmanager(f"http://{address}", process)
        finally:
            process.kill()
            process.wait()


@contextmanager
def prometheus_that_alerts(
    folder: Path, target: str, alertmanager_url: str, *given: Mapping[str, Any]
) -> Iterator[str]:
    """A Prometheus that scrapes `target` five times a second and evaluates rules as often."""
    folder.mkdir(parents=True)
    rules = folder / "rules.yml"
    rules.write_text(json.dumps({"groups": [{"name": "test", "interval": "200ms", "rules": given}]}))
    static = [{"targets": [target]}]
    settings = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "vllm", "static_configs": static}],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager_url.removeprefix("http://")]}]}]},
    }
    with prometheus(folder / "server", config=json.dumps(settings)) as url:
        yield url
