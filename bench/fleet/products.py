"""The two real servers of Debian: how they are started, filled, and left in a state that starts quickly."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import httpx

from . import json_lines, remote_write
from .members import Settings
from .process import Running, running

BATCH_BYTES = 8 << 20
_AT_ONCE = 2
_REMOTE_WRITE = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}


@dataclass(frozen=True)
class Product:
    """One kind of server. `fill` loads a fleet into a data folder and gives what was measured while it did."""

    binary: str
    package: str
    health: str
    flags: Callable[[Path], Sequence[str]]
    listen: str
    fill: Callable[[Product, Path, Settings], dict[str, float]]

    def serve(self, data: Path, flags: Sequence[str] = ()) -> Running:
        """A running server on that data folder; flags given last win."""
        words = [*self.flags(data), *flags]
        return running(self.binary, self.package, words, self.listen, self.health, data.parent)


def _post(url: str, bodies: Iterator[bytes], headers: dict[str, str]) -> int:
    """Sends all bodies, two at a time, while the next one is made. Gives the bytes."""
    sent, waiting = 0, set[Future[None]]()
    with httpx.Client(timeout=600, trust_env=False, headers=headers) as client, ThreadPoolExecutor(_AT_ONCE) as pool:
        for body in bodies:
            sent += len(body)
            waiting.add(pool.submit(_post_one, client, url, body))
            if len(waiting) > _AT_ONCE:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for one in done:
                    one.result()
        for one in waiting:
            one.result()
    return sent


def _post_one(client: httpx.Client, url: str, body: bytes) -> None:
    answer = client.post(url, content=body)
    if answer.status_code != 204:
        raise RuntimeError(f"{url} answers {answer.status_code}: {answer.text[:500]}")


def _fill_victoria(product: Product, data: Path, settings: Settings) -> dict[str, float]:
    start = time.perf_counter()
    with product.serve(data) as server:
        sent = _post(f"{server.url}/api/v1/import", json_lines.blocks(settings, BATCH_BYTES), {})
        httpx.get(f"{server.url}/internal/force_flush", timeout=600, trust_env=False).raise_for_status()
        measured = {"sent_bytes": sent, "load_seconds": time.perf_counter() - start, **server.memory("loaded")}
    return measured


def _fill_prometheus(product: Product, data: Path, settings: Settings) -> dict[str, float]:
    """Through the receiver into the head, then as a snapshot: a block, so that serving it again replays no log."""
    start, filling = time.perf_counter(), data.with_name("filling")
    with product.serve(filling, ["--web.enable-remote-write-receiver", "--web.enable-admin-api"]) as server:
        blocks = remote_write.blocks(settings, BATCH_BYTES)
        sent = _post(f"{server.url}/api/v1/write", blocks, _REMOTE_WRITE)
        measured = {"sent_bytes": sent, "load_seconds": time.perf_counter() - start, **server.memory("loaded")}
        start = time.perf_counter()
        taken = httpx.post(f"{server.url}/api/v1/admin/tsdb/snapshot", timeout=1800, trust_env=False)
        taken.raise_for_status()
        measured["snapshot_seconds"] = time.perf_counter() - start
    (filling / "snapshots" / taken.json()["data"]["name"]).rename(data)
    shutil.rmtree(filling)
    return measured


def _victoria_flags(data: Path) -> list[str]:
    limits = ["-search.maxUniqueTimeseries=20000000", "-search.maxQueryLen=1MB", "-search.maxQueryDuration=300s"]
    return [
        f"-storageDataPath={data}",
        "-retentionPeriod=100y",
        "-loggerLevel=ERROR",
        "-maxLabelsPerTimeseries=60",
        "-search.latencyOffset=0s",
        "-search.disableCache",  # a benchmark asks for the same instant again, a service never does
        *limits,
    ]


def _prometheus_flags(data: Path) -> list[str]:
    config = data.parent / "prometheus.yml"
    config.write_text("global: {}\n")
    kept = [f"--storage.tsdb.path={data}", "--storage.tsdb.retention.time=100y", "--log.level=warn"]
    return [f"--config.file={config}", *kept, "--query.max-samples=200000000", "--query.timeout=5m"]


PRODUCTS = {
    "victoriametrics": Product(
        "victoria-metrics", "victoria-metrics", "/health", _victoria_flags, "-httpListenAddr=", _fill_victoria
    ),
    "prometheus": Product(
        "prometheus", "prometheus", "/-/ready", _prometheus_flags, "--web.listen-address=", _fill_prometheus
    ),
}
