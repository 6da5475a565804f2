"""docker-compose.yml without containers: the same commands and configuration, with loopback ports instead of hosts."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from prometheus import servers
from prometheus.servers import free_port

ROOT = Path(__file__).parents[2]
COMPOSE: Mapping[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
PORTS = {"engine-bound": 8000, "engine-healthy": 8000, "diagnoser": 9180, "prometheus": 9090, "alertmanager": 9093}
READY = {
    "engine-bound": "/metrics", "engine-healthy": "/metrics", "diagnoser": "/healthz", "prometheus": "/-/ready",
    "alertmanager": "/-/ready",
}  # fmt: skip
PROGRAMS = {"prometheus": ["prometheus"], "alertmanager": ["prometheus-alertmanager"]}
DIAGNOSE = [sys.executable, "-m", "diagnoser"]
"""The entry point of the image."""
GIVE_UP_SECONDS = 240.0


@dataclass(frozen=True)
class Stack:
    """Ports of what runs."""

    ports: Mapping[str, int]
    folder: Path

    def address(self, name: str) -> str:
        """host:port."""
        return f"127.0.0.1:{self.ports[name]}"

    def get(self, name: str, path: str, **parameters: str) -> Any:
        """What a service answers."""
        found = httpx.get(f"http://{self.address(name)}{path}", params=parameters, timeout=30, trust_env=False)
        assert found.status_code == 200, found.text
        return found.json()

    def words(self, name: str) -> list[str]:
        """The command of a service, and the address it has to listen on here."""
        given = [self._here(name, word) for word in COMPOSE[name]["command"]]
        if name.startswith("engine"):
            given = [str(self.ports[name]) if word == "8000" else word for word in given]
            return DIAGNOSE + ["127.0.0.1" if word == "0.0.0.0" else word for word in given]
        listen = [] if name == "diagnoser" else [f"--web.listen-address={self.address(name)}"]
        return [*PROGRAMS.get(name, DIAGNOSE), *given, *listen]

    def _here(self, name: str, word: str) -> str:
        """Paths in the container become paths here; configuration files become copies with other hosts."""
        for volume in COMPOSE[name].get("volumes", []):
            source, inside = volume.split(":")[:2]
            if inside in word:
                return word.replace(
                    inside, str(self._copy(name, source) if source.startswith(".") else self._data(name))
                )
        return word

    def _data(self, name: str) -> Path:
        made = self.folder / f"{name}-data"
        made.mkdir(exist_ok=True)
        return made

    def _copy(self, name: str, source: str) -> Path:
        path = ROOT / source
        if path.suffix not in (".yml", ".yaml"):
            return path
        copy = self.folder / f"{name}-{path.name}"
        copy.write_text(self._replaced(name, path.read_text()))
        return copy

    def _replaced(self, name: str, text: str) -> str:
        for other, port in PORTS.items():
            text = re.sub(rf"(?<![\w-]){other}:{port}\b", self.address(other), text)
        text = text.replace("0.0.0.0:9180", self.address("diagnoser")).replace("/data/", f"{self._data(name)}/")
        return text.replace("/etc/prometheus/rules", str(ROOT / "deploy" / "compose" / "rules"))


@contextmanager
def running(folder: Path) -> Iterator[Stack]:
    """All of compose but Grafana, in the order of `depends_on`."""
    stack = Stack({name: free_port() for name in PORTS}, folder)
    with ExitStack() as started:
        for name in PORTS:
            url = f"http://{stack.address(name)}"
            started.enter_context(servers.started(stack.words(name), folder / f"{name}.log", url, READY[name]))
        yield stack


def until(work: Callable[[], Any]) -> Any:
    """What it gives once it is something; rules have a window, and alerts a `for`."""
    end = time.monotonic() + GIVE_UP_SECONDS
    while not (found := work()):
        assert time.monotonic() < end, f"still nothing: {work.__doc__ or work.__name__}"
        time.sleep(0.5)
    return found
