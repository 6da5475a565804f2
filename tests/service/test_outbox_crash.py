"""kill -9 between accepting and delivering: nothing is lost, and what may have arrived twice says so. A stop drains."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from .alert_kit import PATIENCE, Receiver, receiver, until
from .alertmanagers import free_port
from .engine_page import engine

ROOT = Path(__file__).parents[2]
PROCESS = """
import asyncio, sys
from pathlib import Path
from tests.service.alert_kit import Engines, diagnosis, item, notify
from diagnoser.service.alerting import Alerting
from diagnoser.service.history import History
from diagnoser.service.inbound import AlertmanagerPayload
from diagnoser.service.inbound_settings import WebhookSettings

async def main(folder, url, *words):
    history = await History.open(Path(folder) / "d.db", 86400.0, 2**30)
    engines = Engines()
    engines.board.put([diagnosis()])
    settings = notify(receivers=[{"name": "hook", "rate_limit": "9999/s", "webhook": {"url": url, "timeout": "60s"}}])
    webhook = WebhookSettings(forward=("hook",))
    alerting = await Alerting.open(settings, webhook, history, engines, "http://127.0.0.1:9180")
    if "add" in words:
        await alerting.outbox.add([item("a"), item("b"), item("c")])
    if "receive" in words:
        alert = {"status": "firing", "labels": {"alertname": "SlowTTFT", "instance": "10.0.3.7:8000"},
                 "startsAt": "2026-11-28T16:26:40Z", "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "f1"}
        payload = {"version": "4", "groupKey": "g", "status": "firing", "alerts": [alert]}
        receipt = await alerting.inbound.receive(AlertmanagerPayload.model_validate(payload))
        print("accepted", receipt.accepted, "repeated", receipt.repeated, flush=True)
    if "many" in words:
        running = asyncio.create_task(alerting.run())
        for number in range(10_000):
            await alerting.outbox.add([item(f"m{number}")])
            print(f"m{number}", flush=True)
    if "run" in words:
        await alerting.run()
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def process(folder: Path, hook: Receiver, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A process of its own, which is killed without a warning."""
    command: Sequence[str] = [sys.executable, "-c", PROCESS, str(folder), hook.url, *words]
    started = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait(PATIENCE)
        assert started.stdout is not None
        started.stdout.close()


def test_a_message_survives_a_kill_while_it_is_delivered(tmp_path: Path) -> None:
    with receiver("hang") as hook:
        with process(tmp_path, hook, "add", "run"):
            first = asyncio.run(hook.next())
        hook.over.set()
        with process(tmp_path, hook, "run"):
            rest = [asyncio.run(hook.next()) for _ in range(3)]
        assert (first.headers["Idempotency-Key"], first.json["attempt"]) == ("a", 1)
        assert [(one.headers["Idempotency-Key"], one.json["attempt"]) for one in rest] == [("a", 2), ("b", 1), ("c", 1)]


@contextmanager
def serving(folder: Path, target: str, hook: Receiver) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`diagnose serve` as people run it; gives its address."""
    port = free_port()
    settings = {
        "targets": [{"static": [target], "interval": "100ms"}],
        "window": "2s",
        "evaluate_every": "200ms",
        "history": {"path": "d.db"},
        "web": {"listen": f"127.0.0.1:{port}"},
        "notify": {"receivers": [{"name": "hook", "webhook": {"url": hook.url, "timeout": "60s"}}], "routes": []},
        "webhook": {"forward": ["hook"]},
    }
    (folder / "diagnoser.yaml").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "diagnoser", "serve", "--config", str(folder / "diagnoser.yaml")]
    with (folder / "serve.log").open("ab") as log:
        started = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        asyncio.run(until(lambda: ready(url)))
        yield url, started
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait(PATIENCE)


def ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def called(url: str, target: str) -> dict[str, Any]:
    """Alertmanager's call."""
    now = datetime.now(UTC).isoformat()
    labels = {"alertname": "SlowTTFT", "instance": target}
    alert = {
        "status": "firing",
        "labels": labels,
        "startsAt": now,
        "endsAt": "0001-01-01T00:00:00Z",
        "fingerprint": "f",
    }
    payload = {"version": "4", "groupKey": "g", "status": "firing", "alerts": [alert]}
    answer = httpx.post(f"{url}/api/v1/webhook/alertmanager", json=payload, timeout=PATIENCE, trust_env=False)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_an_alert_that_the_service_accepted_is_answered_after_a_kill(tmp_path: Path) -> None:
    """The receiver of the answer hangs, so that the kill comes after the diagnosis and before the delivery."""
    with engine() as page, receiver("hang") as hook:
        with serving(tmp_path, page.address, hook) as (url, _):
            receipt = called(url, page.address)
            assert (receipt["accepted"], receipt["repeated"]) == (1, 0)
            first = asyncio.run(hook.next())
        hook.over.set()
        with serving(tmp_path, page.address, hook) as (url, _):
            again = asyncio.run(hook.next())
            (result,) = httpx.get(f"{url}/api/v1/webhook/results", timeout=PATIENCE, trust_env=False).json()
        assert result["id"] == receipt["ids"][0]
        keys = [one.headers["Idempotency-Key"] for one in (first, again)]
        assert (keys[0] == keys[1], first.json["attempt"], again.json["attempt"]) == (True, 1, 2)
        assert again.json["alert"]["name"] == "SlowTTFT"


def test_a_stop_waits_for_what_is_being_sent(tmp_path: Path) -> None:
    with engine() as page, receiver("slow") as hook, serving(tmp_path, page.address, hook) as (url, started):
        called(url, page.address)
        asyncio.run(hook.next())
        started.send_signal(signal.SIGTERM)
        hook.over.set()
        assert started.wait(PATIENCE) == 0
        assert hook.arrived.empty()
    with sqlite3.connect(tmp_path / "d.db") as db:
        rows = db.execute("SELECT receiver, state, attempts FROM outbox ORDER BY receiver").fetchall()
    db.close()
    assert [(name.partition(".")[0], *rest) for name, *rest in rows] == [("@webhook", "done", 1), ("hook", "done", 1)]


@pytest.mark.parametrize("kept", [1, 23, 111])
def test_whatever_was_kept_before_a_kill_arrives(kept: int, tmp_path: Path) -> None:
    """Killed in the middle of adding and delivering; what is known as kept must arrive, before or after."""
    with receiver() as hook:
        with process(tmp_path, hook, "many") as before:
            assert before.stdout is not None
            acknowledged = {before.stdout.readline().strip() for _ in range(kept)}
        arrived: dict[str, int] = {}
        with process(tmp_path, hook, "run"):
            while not acknowledged <= arrived.keys():
                got = asyncio.run(hook.next())
                key, attempt = got.headers["Idempotency-Key"], got.json["attempt"]
                assert attempt == arrived.get(key, 0) + 1 or (attempt == 2 and key not in arrived)
                arrived[key] = attempt


def test_an_alert_that_was_accepted_is_diagnosed_after_a_kill(tmp_path: Path) -> None:
    with receiver() as hook:
        with process(tmp_path, hook, "receive") as before:
            assert before.stdout is not None
            assert before.stdout.readline() == "accepted 1 repeated 0\n"
        assert hook.arrived.empty()
        with process(tmp_path, hook, "receive", "run") as after:
            assert after.stdout is not None
            assert after.stdout.readline() == "accepted 0 repeated 1\n"
            got = asyncio.run(hook.next())
        assert (got.json["kind"], got.json["alert"]["name"]) == ("answer", "SlowTTFT")
