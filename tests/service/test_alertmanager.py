"""Our alerts in the real Alertmanager: they appear, stay, change, resolve, and end by themselves when we are gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from diagnoser.model import Diagnosis
from diagnoser.service.alerting import Alerting
from diagnoser.service.inbound_settings import WebhookSettings
from diagnoser.service.notify.alertmanager import Alertmanager as AlertmanagerReceiver
from diagnoser.service.notify.settings import AlertmanagerSettings

from .alert_kit import QUICK, Engines, diagnosis, entry, item, notify, opened, receiver, until
from .alertmanagers import Alertmanager, alertmanager, free_port

LABELS = {
    "alertname": "EngineBottleneck",
    "instance": "10.0.3.7:8000",
    "rank": "0",
    "model": "llama-3-70b",
    "engine_family": "vllm",
    "bottleneck": "l1",
    "severity": "critical",
    "job": "vllm",
    "team": "chat",
}


class Watching:
    """Evaluates ten times a second whatever `shown` holds."""

    def __init__(self, alerting: Alerting) -> None:
        self.alerting, self.shown = alerting, tuple[Diagnosis, ...]()
        self._since = time.time()

    def show(self, *found: Diagnosis) -> None:
        self.shown, self._since = found, time.time()

    async def run(self) -> None:
        while True:
            entries = [entry(one, self._since) for one in self.shown]
            await self.alerting.saw(entries, time.time())
            await asyncio.sleep(0.1)


@asynccontextmanager
async def watching(
    url: str, path: Path | None = None, resend: str = "500ms", timeout: str = "10s", **settings: Any
) -> AsyncIterator[Watching]:
    receivers = [{"name": "am", "alertmanager": {"url": url, "resend_every": resend, "timeout": timeout}}]
    routes = [{"receivers": ["am"], "for": "200ms"}]
    engines = Engines(labels={"10.0.3.7:8000": {"job": "vllm", "team": "chat"}})
    async with opened(path) as history:
        given = notify(receivers=receivers, routes=routes, external_url="https://d.example", **settings)
        made = await Alerting.open(given, WebhookSettings(), history, engines, "", backoff=QUICK)
        watching = Watching(made)
        tasks = [asyncio.create_task(made.run()), asyncio.create_task(watching.run())]
        try:
            yield watching
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await made.close()


def test_an_alert_appears_stays_and_resolves(tmp_path: Path) -> None:
    async def work(am: Alertmanager) -> None:
        async with watching(am.url, resend="2s") as dog:
            dog.show(diagnosis())
            (shown,) = await until(am.alerts)
            assert shown["labels"] == LABELS
            notes = shown["annotations"]
            assert notes["summary"] == "L1-BOUND (preempting), L2 idle"
            assert notes["description"].splitlines()[0] == "KV space was the closed gate for 92 % of the window."
            assert (
                notes["description"].splitlines()[-1]
                == "Do: Shed or cap arrivals now: --max-num-queued-reqs N (from 0.29), or a limit at the gateway"
            )
            assert (
                notes["remedy"]
                == "Shed or cap arrivals now: --max-num-queued-reqs N (from 0.29), or a limit at the gateway"
            )
            assert notes["runbook_url"] == "https://d.example/api/v1/rules/verdicts/l1_preempting"
            assert (notes["mode"], notes["confidence"]) == ("preempting", "high")
            assert shown["generatorURL"] == "https://d.example/api/v1/engines/10.0.3.7%3A8000%2F0"

            async def lives_longer() -> bool:
                (now,) = await am.alerts()
                return bool(now["updatedAt"] > shown["endsAt"])

            await until(lives_longer)  # past the end that its first message gave
            (later,) = await am.alerts()
            assert (later["fingerprint"], later["startsAt"]) == (shown["fingerprint"], shown["startsAt"])
            dog.show(diagnosis("none"))
            await until(lambda: _empty(am))

    with alertmanager(tmp_path) as am:
        asyncio.run(work(am))


async def _empty(am: Alertmanager) -> bool:
    return await am.alerts() == []


def test_alertmanager_tells_its_own_receivers_that_it_fired_and_resolved(tmp_path: Path) -> None:
    async def work(am: Alertmanager, hook: Any) -> None:
        async with watching(am.url, resend="1m") as dog:
            dog.show(diagnosis())
            assert (await hook.next()).json["status"] == "firing"
            dog.show(diagnosis("none"))
            over = (await hook.next()).json
            assert (over["status"], over["alerts"][0]["labels"]) == ("resolved", LABELS)
            assert hook.arrived.empty()

    with receiver() as hook, alertmanager(tmp_path, hook.url) as am:
        asyncio.run(work(am, hook))


def test_another_severity_takes_the_place_of_the_alert(tmp_path: Path) -> None:
    async def work(am: Alertmanager) -> None:
        async with watching(am.url, resend="1m") as dog:
            dog.show(diagnosis(severity="warning"))
            await until(lambda: am.one(severity="warning"))
            dog.show(diagnosis("slots"))
            await until(lambda: am.one(bottleneck="slots", severity="critical"))
            assert [one["labels"]["bottleneck"] for one in await am.alerts()] == ["slots"]

    with alertmanager(tmp_path) as am:
        asyncio.run(work(am))


def test_it_ends_by_itself_when_we_are_gone(tmp_path: Path) -> None:
    async def work(am: Alertmanager) -> None:
        async with watching(am.url, resend="250ms") as dog:
            dog.show(diagnosis())
            await until(am.alerts)
        await until(lambda: _empty(am))

    with alertmanager(tmp_path) as am:
        asyncio.run(work(am))


def test_an_alertmanager_that_comes_late_or_lost_its_data_is_told(tmp_path: Path) -> None:
    async def work(port: int) -> None:
        async with watching(f"http://127.0.0.1:{port}", resend="500ms") as dog:
            dog.show(diagnosis())
            await until(lambda: dog.alerting.problems())
            for name in ("first", "second"):
                with alertmanager(tmp_path / name, port=port) as am:
                    await until(am.alerts)

    asyncio.run(work(free_port()))


def test_the_end_reaches_an_alertmanager_that_was_away(tmp_path: Path) -> None:
    """Also when this process was started anew in between: what it was told is on disk."""

    async def work(am: Alertmanager) -> None:
        async with watching(am.url, tmp_path / "d.db", resend="1m") as dog:
            dog.show(diagnosis())
            await until(am.alerts)
        async with watching(am.url, tmp_path / "d.db", resend="5s", timeout="200ms") as dog:
            with am.away():
                dog.show(diagnosis("none"))
                await until(lambda: dog.alerting.problems())
            await until(lambda: _empty(am))

    with alertmanager(tmp_path) as am:
        asyncio.run(work(am))


def test_chinese_annotations(tmp_path: Path) -> None:
    async def work(am: Alertmanager) -> None:
        async with watching(am.url, resend="1m", language="zh") as dog:
            dog.show(diagnosis())
            (shown,) = await until(am.alerts)
            assert shown["annotations"]["summary"] == "L1 受限（抢占），L2 空闲"
            assert shown["labels"]["bottleneck"] == "l1"

    with alertmanager(tmp_path) as am:
        asyncio.run(work(am))


def test_a_whole_fleet_in_one_message(tmp_path: Path) -> None:
    fleet: Sequence[Diagnosis] = [diagnosis(target=f"10.0.{i // 250}.{i % 250}:8000") for i in range(500)]

    async def work(am: Alertmanager) -> None:
        async with watching(am.url, resend="1m") as dog:
            dog.show(*fleet)

            async def all_of_them() -> bool:
                return len(await am.alerts()) == len(fleet)

            await until(all_of_them)

    with alertmanager(tmp_path) as am:
        asyncio.run(work(am))


def test_what_fires_again_soon_after_its_end_stays(tmp_path: Path) -> None:
    """Ends are repeated, but not those of an alert that is back."""

    async def work(am: Alertmanager) -> None:
        async with watching(am.url, resend="1s") as dog:
            dog.show(diagnosis())
            await until(am.alerts)
            dog.show(diagnosis("none"))
            await until(lambda: _empty(am))
            dog.show(diagnosis())
            (shown,) = await until(am.alerts)

            async def lives_longer() -> bool:
                (now,) = await am.alerts()
                return bool(now["updatedAt"] > shown["endsAt"])

            await until(lives_longer)

    with alertmanager(tmp_path) as am:
        asyncio.run(work(am))


def test_who_we_are_is_told_by_files_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("T0KEN\n")
    monkeypatch.setenv("AM_USER", "diagnoser:pw")

    async def sent(**settings: Any) -> dict[str, str]:
        with receiver() as hook:
            made = AlertmanagerReceiver("am", AlertmanagerSettings(url=hook.url, **settings), "en", None)
            assert (await made.deliver(item("a", "am"))).accepted
            await made.close()
            got = await hook.next()
            assert got.path == "/api/v2/alerts"
            return dict(got.headers)

    bearer = asyncio.run(sent(bearer_file=tmp_path / "token", tenant="team-a"))
    assert (bearer["Authorization"], bearer["X-Scope-OrgID"]) == ("Bearer T0KEN", "team-a")
    assert asyncio.run(sent(basic_env="AM_USER"))["Authorization"] == "Basic ZGlhZ25vc2VyOnB3"
