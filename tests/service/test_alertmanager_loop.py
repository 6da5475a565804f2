"""Both ways at once, all real: an engine's queue grows, Prometheus fires, Alertmanager calls us, we answer with the
verdict, our own alert appears in Alertmanager, and everything resolves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from diagnoser.service.config import Config
from diagnoser.service.service import Service

from .alert_kit import Receiver, receiver, until
from .alertmanagers import Alertmanager, alertmanager, free_port, prometheus_that_alerts
from .engine_page import EnginePage, engine

RULE = {"alert": "QueueGrows", "expr": "vllm:num_requests_waiting > 0", "labels": {"severity": "page"}}


@asynccontextmanager
async def service(page: EnginePage, am_port: int, hook: Receiver, folder: Path) -> AsyncIterator[Service]:
    """The whole service, answering on a free port."""
    settings = {
        "targets": [{"static": [page.address], "interval": "100ms", "labels": {"job": "vllm", "team": "chat"}}],
        "window": "4s",
        "evaluate_every": "200ms",
        "history": {"path": str(folder / "d.db")},
        "web": {"listen": "127.0.0.1:0"},
        "notify": {
            "external_url": "https://diagnoser.example",
            "receivers": [
                {"name": "am", "alertmanager": {"url": f"http://127.0.0.1:{am_port}", "resend_every": "1s"}},
                {"name": "hook", "webhook": {"url": hook.url}},
            ],
            "routes": [{"receivers": ["am"], "for": "300ms"}],
        },
        "webhook": {"window": "1s", "forward": ["hook"]},
    }
    made = Service(lambda: Config.model_validate(settings))
    await made.start()
    try:
        yield made
    finally:
        await made.stop(5.0)


async def results(url: str, name: str, status: str) -> list[dict[str, Any]]:
    """What our webhook did about such alerts."""
    async with httpx.AsyncClient(trust_env=False) as client:
        found = (await client.get(f"{url}/api/v1/webhook/results", timeout=10)).json()
    return [one for one in found if (one["alert"]["labels"]["alertname"], one["status"]) == (name, status)]


async def answer(hook: Receiver, status: str) -> dict[str, Any]:
    """The next message about an alert of that status."""
    while True:
        body: dict[str, Any] = (await hook.next()).json
        if body["alert"]["status"] == status:
            return body


async def loop(am: Alertmanager, page: EnginePage, hook: Receiver, url: str) -> None:
    assert await am.alerts() == []
    page.bound = True
    told = await answer(hook, "firing")
    assert (told["kind"], told["alert"]["name"]) == ("answer", "QueueGrows")
    assert told["events"][0]["target"] == page.address
    ours = await until(lambda: am.one(alertname="EngineBottleneck", severity="critical"))
    expected = {"instance": page.address, "job": "vllm", "team": "chat", "bottleneck": "l1"}
    assert expected.items() <= ours["labels"].items()
    assert ours["annotations"]["summary"].startswith("L1-BOUND (preempting)")
    assert await am.one(alertname="QueueGrows") is not None
    (result,) = await results(url, "QueueGrows", "firing")
    assert [one["engine"] for one in result["engines"]] == [f"{page.address}/0"]
    own = await until(lambda: results(url, "EngineBottleneck", "firing"))
    assert {one["reason"] for one in own} == {"it is our own alert, which already says the verdict"}

    page.bound = False
    over = await answer(hook, "resolved")
    assert over["alert"]["name"] == "QueueGrows"
    assert over["alert"]["ends_at"] > over["alert"]["starts_at"] > told["alert"]["starts_at"] - 1

    async def nothing() -> bool:
        return await am.alerts() == []

    await until(nothing)
    await until(lambda: results(url, "EngineBottleneck", "resolved"))
    (result,) = await results(url, "QueueGrows", "resolved")
    assert result["window"]["end"] == over["alert"]["ends_at"]
    assert result["engines"][0]["diagnosis"] is not None


def test_a_rule_fires_we_answer_and_our_own_alert_appears_and_resolves(tmp_path: Path) -> None:
    async def work(page: EnginePage, hook: Receiver) -> None:
        port = free_port()
        async with service(page, port, hook, tmp_path) as made:
            assert made.web is not None
            url = f"http://{made.web.address}"
            webhook = f"{url}/api/v1/webhook/alertmanager"
            asking = f"http://127.0.0.1:{port}"
            with (
                alertmanager(tmp_path / "am", webhook, port) as am,
                prometheus_that_alerts(tmp_path / "prometheus", page.address, asking, RULE),
            ):
                await loop(am, page, hook, url)

    with engine() as page, receiver() as hook:
        asyncio.run(work(page, hook))
