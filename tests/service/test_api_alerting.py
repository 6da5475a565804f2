"""Alertmanager's webhook, silences and notifications over HTTP, with the real alerting behind them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from service.web_kit import BOUND, Web, named, recorded, serve

HOOK = "/api/v1/webhook/alertmanager"


def payload(status: str = "firing") -> dict[str, Any]:
    alert = {
        "status": status,
        "labels": {"alertname": "HighTtft", "instance": "10.0.3.7:8000"},
        "annotations": {},
        "startsAt": "2026-11-29T18:14:00Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": "c0ffee",
    }
    return {"version": "4", "groupKey": '{}:{alertname="HighTtft"}', "status": status, "alerts": [alert],
            "truncatedAlerts": 0, "receiver": "diagnoser", "groupLabels": {}, "commonLabels": {}}  # fmt: skip


def results(web: Web) -> list[dict[str, Any]]:
    """Once there are some: the work is done after the answer."""

    async def wait() -> None:
        async with asyncio.timeout(30):
            while not await web.world.alerting.inbound.results(1):  # type: ignore[union-attr]
                await asyncio.sleep(0.02)

    web.do(wait())
    found: list[dict[str, Any]] = web.json("/api/v1/webhook/results")
    return found


def test_alerts_are_kept_answered_and_diagnosed() -> None:
    with serve() as web:
        web.evaluated(named(recorded(BOUND, 60)[0], "10.0.3.7:8000"))
        first = web.client.post(HOOK, json=payload())
        assert first.status_code == 202
        assert (first.json()["accepted"], first.json()["repeated"]) == (1, 0)
        again = web.client.post(HOOK, json=payload()).json()
        assert (again["accepted"], again["repeated"], again["ids"]) == (0, 1, first.json()["ids"])
        found = results(web)
        assert found[0]["id"] == first.json()["ids"][0] and found[0]["fingerprint"] == "c0ffee"
        assert found[0]["status"] == "firing" and "10.0.3.7:8000" in str(found[0])


@pytest.mark.parametrize(
    "wrong",
    [{}, [], {"version": "3"}, {**payload(), "alerts": [{}]}, {**payload(), "status": "maybe"},
     {**payload(), "alerts": [{**payload()["alerts"][0], "startsAt": 5}]}],
)  # fmt: skip
def test_what_is_no_webhook_is_refused(wrong: Any) -> None:
    with serve() as web:
        refused = web.client.post(HOOK, json=wrong)
        assert refused.status_code == 422 and refused.json()["errors"]


def test_large_groups_are_taken_and_too_many_are_told_to_come_again() -> None:
    """Alertmanager sends again after 5xx alone, so neither 413 nor 429 may come early."""
    alert = payload()["alerts"][0]
    many = [{**alert, "fingerprint": f"{i:x}", "annotations": {"text": "x" * 2000}} for i in range(1000)]
    with serve({"rate_limit": "1/h"}) as web:
        assert web.client.post(HOOK, json={**payload(), "alerts": many}).json()["accepted"] == 1000
        limited = web.client.post(HOOK, json=payload())
        assert limited.status_code == 503 and int(limited.headers["Retry-After"]) > 0


def test_body_that_is_no_json_is_refused() -> None:
    with serve() as web:
        refused = web.client.post(HOOK, content=b"{", headers={"Content-Type": "application/json"})
        assert refused.status_code == 422 and refused.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"match":{"target":"*"},"until":NaN}', 422),
        (b'{"match":{"target":"*"},"until":1e999}', 422),
        (b'{"match":{"target":"*"},"from":-Infinity,"until":4e9}', 422),
        (b'{"match":{"target":"\\ud800"},"until":4e9}', 422),
        (b"\xff\xfe", 422),
        (b"[" * 100_000, 400),
        (b'{"match":' * 50_000, 400),
    ],
)
def test_json_that_only_python_takes_is_refused(body: bytes, status: int) -> None:
    with serve() as web:
        answer = web.client.post("/api/v1/silences", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == status, answer.text
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert web.world.history.healthy


def test_silences_begin_and_end() -> None:
    with serve() as web:
        wish = {"match": {"target": "10.0.3.*"}, "until": "2099-01-01T00:00:00Z", "comment": "new GPUs"}
        made = web.client.post("/api/v1/silences", json=wish)
        assert made.status_code == 201 and made.json()["source"] == "api"
        assert web.json("/api/v1/silences") == [made.json()]
        path = f"/api/v1/silences/{made.json()['id']}"
        assert web.client.delete(path).status_code == 204
        assert web.json("/api/v1/silences") == []
        gone = web.client.delete(path)
        assert gone.status_code == 404 and gone.json()["type"].endswith("no-such-silence")


@pytest.mark.parametrize(
    "wrong",
    [{"match": {}, "until": 4e9}, {"match": {"target": "*"}}, {"match": {"target": "*"}, "until": 1000},
     {"match": {"target": "*"}, "until": "soon"}, {"match": {"target": "*"}, "from": 5e9, "until": 4e9}],
)  # fmt: skip
def test_wrong_silences_are_refused(wrong: dict[str, Any]) -> None:
    with serve() as web:
        assert web.client.post("/api/v1/silences", json=wrong).status_code == 422


def test_notifications_without_receivers() -> None:
    with serve() as web:
        assert web.json("/api/v1/notifications") == []
        assert web.json("/api/v1/notifications?state=dead") == []
        assert web.json("/api/v1/notifications?state=silenced") == []
        assert web.client.post("/api/v1/notifications/none/retry").status_code == 404
        assert web.json("/api/v1/status")["notifications"] == {"pending": 0, "dead": 0}
