"""kill -9 between accepting and delivering: nothing is lost, and what may have arrived twice says so."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .alert_kit import PATIENCE, Receiver, receiver

ROOT = Path(__file__).parents[2]
PROCESS = """
import asyncio, sys
from pathlib import Path
from tests.service.alert_kit import Engines, diagnosis, item, notify
from diagnoser.service.alerting import Alerting
from diagnoser.service.history import History
from diagnoser.service.inbound import AlertmanagerPayload
from diagnoser.service.notify.settings import WebhookSettings

async def main(folder, url, *words):
    history = await History.open(Path(folder) / "d.db", 86400.0, 2**30)
    engines = Engines()
    engines.board.put([diagnosis()])
    settings = notify(receivers=[{"name": "hook", "webhook": {"url": url, "timeout": "60s"}}])
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
