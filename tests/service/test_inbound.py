"""Alerts that come in: which engines they mean, their own time, repeats, and those that match nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from diagnoser.errors import UsageError
from diagnoser.model import Diagnosis
from diagnoser.service.alerting import Alerting, check
from diagnoser.service.board import Key
from diagnoser.service.history import History, HistoryError
from diagnoser.service.inbound import LANES, AlertmanagerPayload, lane_of
from diagnoser.service.inbound_settings import Relabel, WebhookSettings
from diagnoser.service.notify.event import Message
from diagnoser.service.records import OutboxItem
from diagnoser.service.relabel import apply, choose, relabelled

from .alert_kit import START, Clock, Engines, diagnosis, notify, opened, until

GROUP = '{}:{alertname="SlowTTFT"}'
HOOK = {"name": "hook", "webhook": {"url": "http://127.0.0.1:9"}}


def rule(**settings: Any) -> Relabel:
    return Relabel.model_validate(settings)


# ---------------------------------------------------------------- relabelling, as Prometheus does it


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"source_labels": ["a"], "target_label": "b"}, {"a": "x:1", "b": "x:1"}),
        ({"source_labels": ["a"], "regex": "(.+):.*", "target_label": "b"}, {"a": "x:1", "b": "x"}),
        ({"source_labels": ["a", "a"], "separator": "-", "target_label": "b"}, {"a": "x:1", "b": "x:1-x:1"}),
        ({"source_labels": ["a"], "regex": "x", "target_label": "b"}, {"a": "x:1"}),
        ({"source_labels": ["a"], "regex": "(?P<host>.+):(.+)", "target_label": "b", "replacement": "${host}/$2/$3$$"},
         {"a": "x:1", "b": "x/1/$"}),
        ({"target_label": "a", "replacement": ""}, {}),
        ({"target_label": "b", "replacement": "fixed"}, {"a": "x:1", "b": "fixed"}),
        ({"source_labels": ["none"], "regex": "", "target_label": "b", "replacement": "y"}, {"a": "x:1", "b": "y"}),
        ({"source_labels": ["a"], "regex": "x.*", "action": "keep"}, {"a": "x:1"}),
        ({"source_labels": ["a"], "regex": "x", "action": "keep"}, None),
        ({"source_labels": ["a"], "regex": "x.*", "action": "drop"}, None),
        ({"source_labels": ["a"], "regex": "x", "action": "drop"}, {"a": "x:1"}),
    ],
)  # fmt: skip
def test_one_rule(settings: Mapping[str, Any], expected: Mapping[str, str] | None) -> None:
    assert apply({"a": "x:1"}, rule(**settings)) == expected


def test_defaults_fill_only_what_is_not_set() -> None:
    alert = {"instance": "a:1", "model_name": "m", "engine": "1", "pod": "p"}
    assert relabelled(alert, (), True) == {**alert, "target": "a:1", "model": "m", "rank": "1"}
    own = rule(source_labels=["pod"], target_label="target")
    found = relabelled(alert, (own,), True)
    assert found is not None
    assert found["target"] == "p"
    assert relabelled(alert, (), False) == alert


ENGINES = {
    "a0": {"target": "a:1", "host": "a", "rank": "0", "model": "m", "family": "vllm", "pod": "pod-a"},
    "a1": {"target": "a:1", "host": "a", "rank": "1", "model": "m", "family": "vllm", "pod": "pod-a"},
    "b0": {"target": "b:1", "host": "b", "rank": "0", "model": "m", "family": "sglang", "gpu": "7"},
}


@pytest.mark.parametrize(
    ("labels", "expected", "reason"),
    [
        ({"target": "a:1"}, ["a0", "a1"], ""),
        ({"target": "a:1", "rank": "1"}, ["a1"], ""),
        ({"target": "a:1", "rank": "7"}, [], "the engine with target=a:1 has no rank 7"),
        ({"target": "ksm:8080", "pod": "pod-a"}, ["a0", "a1"], ""),
        ({"target": "a:9400", "host": "a"}, ["a0", "a1"], ""),
        ({"target": "a:9400", "model": "m"}, [], "no engine that is watched has target=a:9400"),
        ({"target": "b:1", "model": "another name of it"}, ["b0"], ""),
        ({"model": "m"}, ["a0", "a1", "b0"], ""),
        ({"model": "m", "family": "sglang"}, ["b0"], ""),
        ({"model": "m", "rank": "0"}, ["a0", "b0"], ""),
        ({"gpu": "7"}, ["b0"], ""),
        ({"rank": "0"}, [], "its labels name no engine (no instance, pod or model among them)"),
        ({"alertname": "DiskFull"}, [], "its labels name no engine (no instance, pod or model among them)"),
    ],
)
def test_which_engines(labels: Mapping[str, str], expected: list[str], reason: str) -> None:
    assert choose(labels, ENGINES, [rule(target_label="gpu")]) == (expected, reason)


def test_a_rule_that_cannot_work_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ValidationError, match="is no regular expression"):
        rule(regex="(", target_label="x")
    with pytest.raises(ValidationError, match="action replace needs target_label"):
        rule(source_labels=["x"])


# ---------------------------------------------------------------- alerts


def alert(status: str = "firing", starts: str = "2026-11-28T21:00:00Z", **labels: str) -> dict[str, Any]:
    ends = "0001-01-01T00:00:00Z" if status == "firing" else "2026-11-28T21:03:00Z"
    found = {"alertname": "SlowTTFT", "instance": "10.0.3.7:8000", **labels}
    name = str(sorted(found.items()))
    return {
        "status": status, "labels": found, "annotations": {"summary": "slow"}, "startsAt": starts, "endsAt": ends,
        "generatorURL": "http://prometheus/graph", "fingerprint": name, "newField": 1,
    }  # fmt: skip


def payload(*alerts: dict[str, Any], **more: Any) -> AlertmanagerPayload:
    whole = {
        "version": "4", "groupKey": GROUP, "truncatedAlerts": 0, "status": "firing",
        "receiver": "diagnoser", "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {},
        "externalURL": "http://alertmanager", "alerts": list(alerts), "anotherNewField": {}, **more,
    }  # fmt: skip
    return AlertmanagerPayload.model_validate_json(json.dumps(whole))


@asynccontextmanager
async def inbound(
    engines: Engines, path: Path | None = None, forward: tuple[str, ...] = ("hook",), **settings: Any
) -> AsyncIterator[tuple[Alerting, History]]:
    clock = Clock(START + 3600)
    async with opened(path) as history:
        webhook = WebhookSettings.model_validate({"forward": forward, **settings})
        made = await Alerting.open(notify(receivers=[HOOK]), webhook, history, engines, "http://d", clock=clock)
        yield made, history
        await made.close()


def fleet(*found: Any, **labels: Mapping[str, str]) -> Engines:
    """Engines whose pages are kept."""
    engines = Engines(labels=labels)
    engines.board.put(list(found))
    engines.kept = {Key(one.engine.target, one.engine.rank): one for one in found}
    return engines


async def worked(alerting: Alerting) -> list[dict[str, Any]]:
    """Everything that was accepted is diagnosed; the results, newest first."""
    for name in LANES:
        await alerting.outbox._lanes[name].flush()
    return [result.as_data() for result in await alerting.inbound.results()]


def test_an_alert_is_diagnosed_over_its_own_time_and_the_verdict_forwarded() -> None:
    engines = fleet(diagnosis("l1"), diagnosis("slots", target="10.0.3.8:8000"))

    async def work() -> None:
        async with inbound(engines) as (alerting, history):
            receipt = await alerting.inbound.receive(payload(alert()))
            assert (receipt.accepted, receipt.repeated, len(receipt.ids)) == (1, 0, 1)
            assert engines.asked == []
            (result,) = await worked(alerting)
            started = 1_795_899_600.0
            assert engines.asked == [(Key("10.0.3.7:8000", "0"), started - 300, START + 3600)]
            assert result["window"] == {"start": started - 300, "end": START + 3600}
            (engine,) = result["engines"]
            assert (engine["engine"], engine["diagnosis"]["verdict"]["bottleneck"]) == ("10.0.3.7:8000/0", "l1")
            assert (result["status"], result["reason"], result["forwarded_to"]) == ("firing", "", ["hook"])
            assert result["alert"]["labels"]["alertname"] == "SlowTTFT"
            (message,) = [one for one in await history.outbox_list("pending", 10) if one.receiver == "hook"]
            told = Message.from_json(message.payload)
            assert told.asked is not None
            assert (told.kind, told.asked.name, told.events[0].bottleneck) == ("answer", "SlowTTFT", "l1")

    asyncio.run(work())


def test_a_resolved_one_ends_where_it_ended() -> None:
    engines = fleet(diagnosis())

    async def work() -> None:
        async with inbound(engines, window="1m") as (alerting, _):
            await alerting.inbound.receive(payload(alert(), alert("resolved")))
            await worked(alerting)
            started = 1_795_899_600.0
            spans = [(start, end) for _, start, end in engines.asked]
            assert spans == [(started - 60, START + 3600), (started - 60, started + 180)]

    asyncio.run(work())


def test_the_answer_waits_for_no_diagnosis() -> None:
    engines = fleet(diagnosis())

    async def work() -> None:
        asked, go_on = asyncio.Event(), asyncio.Event()

        async def slow(key: Key, start: float, end: float) -> Diagnosis | None:
            asked.set()
            await go_on.wait()
            return engines.kept[key]

        engines.diagnose_at = slow  # type: ignore[method-assign]
        async with inbound(engines) as (alerting, _):
            running = asyncio.create_task(alerting.run())
            await alerting.inbound.receive(payload(alert()))
            await asked.wait()
            assert (await alerting.inbound.receive(payload(alert("resolved")))).accepted == 1
            assert await alerting.inbound.results() == []
            go_on.set()
            assert len(await until(alerting.inbound.results)) >= 1
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(work())


def test_a_slow_diagnosis_delays_no_alert_of_another_lane() -> None:
    engines = fleet(diagnosis(), diagnosis(target="10.0.3.8:8000"))
    other = next(f"f{i}" for i in range(1000) if lane_of(f"{GROUP} f{i}") != lane_of(f"{GROUP} slow"))

    async def work() -> None:
        asked, never = asyncio.Event(), asyncio.Event()

        async def slow(key: Key, start: float, end: float) -> Diagnosis | None:
            if key.target == "10.0.3.7:8000":
                asked.set()
                await never.wait()
            return engines.kept[key]

        engines.diagnose_at = slow  # type: ignore[method-assign]
        async with inbound(engines) as (alerting, _):
            running = asyncio.create_task(alerting.run())
            await alerting.inbound.receive(payload({**alert(), "fingerprint": "slow"}))
            await asked.wait()
            await alerting.inbound.receive(payload({**alert(instance="10.0.3.8:8000"), "fingerprint": other}))
            (result,) = await until(alerting.inbound.results)
            assert result.fingerprint == other
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(work())


def test_an_alert_that_cannot_be_read_any_more_is_given_up() -> None:
    async def work() -> None:
        async with inbound(fleet(diagnosis())) as (alerting, history):
            await history.outbox_add([OutboxItem("old", LANES[1], "webhook", '{"subject": "s"}', START, START)])
            assert await worked(alerting) == []
            (dead,) = await alerting.outbox.dead_items()
            assert (dead.id, dead.attempts) == ("old", 1) and "cannot be read (KeyError)" in dead.error

    asyncio.run(work())


def test_a_repeat_is_no_second_alert(tmp_path: Path) -> None:
    engines = fleet(diagnosis())

    async def work() -> None:
        async with inbound(engines, tmp_path / "d.db") as (alerting, _):
            first = await alerting.inbound.receive(payload(alert()))
            again = await alerting.inbound.receive(payload(alert(), alert()))
            assert (again.accepted, again.repeated, again.ids) == (0, 1, first.ids)
            await worked(alerting)
            assert (await alerting.inbound.receive(payload(alert()))).repeated == 1
            assert len(await worked(alerting)) == 1
            assert len(engines.asked) == 1
            others = [
                payload(alert("resolved")),
                payload(alert(starts="2026-11-28T22:00:00Z")),
                payload(alert(job="x")),
                payload(alert(), groupKey="another"),
            ]
            assert [(await alerting.inbound.receive(one)).accepted for one in others] == [1, 1, 1, 1]

    asyncio.run(work())


def test_an_alert_that_names_no_engine_is_kept_with_the_reason() -> None:
    dropping = [{"source_labels": ["alertname"], "regex": "Node.*", "action": "drop"}]

    async def work() -> None:
        async with inbound(fleet(diagnosis()), relabel=dropping) as (alerting, history):
            ours = alert(alertname="EngineBottleneck")
            await alerting.inbound.receive(
                payload(alert(instance="10.9.9.9:1"), alert(alertname="NodeDown"), ours, alert(instance=""))
            )
            reasons = {
                result["alert"]["labels"]["alertname"] + " " + result["reason"] for result in await worked(alerting)
            }
            assert reasons == {
                "SlowTTFT no engine that is watched has target=10.9.9.9:1",
                "NodeDown the relabelling rules drop it",
                "EngineBottleneck it is our own alert, which already says the verdict",
                "SlowTTFT its labels name no engine (no instance, pod or model among them)",
            }
            assert await history.outbox_list("pending", 10) == []

    asyncio.run(work())


def test_labels_of_the_target_name_it_too() -> None:
    engines = fleet(diagnosis(), **{"10.0.3.7:8000": {"pod": "vllm-0"}})

    async def work() -> None:
        async with inbound(engines) as (alerting, _):
            await alerting.inbound.receive(payload(alert(instance="kube-state-metrics:8080", pod="vllm-0")))
            (result,) = await worked(alerting)
            assert [engine["engine"] for engine in result["engines"]] == ["10.0.3.7:8000/0"]

    asyncio.run(work())


def test_an_alert_of_a_model_is_diagnosed_for_the_worst_engines() -> None:
    found = [diagnosis("none", target=f"n{i}") for i in range(5)] + [diagnosis("l1", target="bad")]

    async def work() -> None:
        async with inbound(fleet(*found), max_engines=3) as (alerting, _):
            await alerting.inbound.receive(payload(alert(instance="", model_name="llama-3-70b")))
            (result,) = await worked(alerting)
            assert [engine["target"] for engine in result["engines"]] == ["bad", "n0", "n1"]
            assert result["reason"] == "it names 6 engine ranks; these are the 3 worst now"

    asyncio.run(work())


def test_where_no_page_of_that_time_is_kept_it_says_so() -> None:
    engines = Engines()
    engines.board.put([diagnosis(at=START + 3595), diagnosis(target="old:1", at=START - 9000)])

    async def work() -> None:
        async with inbound(engines) as (alerting, _):
            await alerting.inbound.receive(payload(alert(), alert(instance="old:1")))
            by_engine = {result["engines"][0]["target"]: result for result in await worked(alerting)}
            near, far = by_engine["10.0.3.7:8000"], by_engine["old:1"]
            assert near["engines"][0]["diagnosis"]["verdict"]["bottleneck"] == "l1"
            assert near["engines"][0]["reason"] == "no page of that time is kept: this is the newest verdict"
            assert far["engines"][0]["diagnosis"] is None
            assert far["reason"] == "no page of that time is kept, and the newest verdict is of another time"
            assert far["forwarded_to"] == []

    asyncio.run(work())


def test_what_cannot_be_kept_is_not_accepted(tmp_path: Path) -> None:
    async def work() -> None:
        async with inbound(fleet(diagnosis()), tmp_path / "d.db") as (alerting, history):
            await history.transact(lambda db: db.execute("DROP TABLE outbox"))
            with pytest.raises(HistoryError):
                await alerting.inbound.receive(payload(alert()))

    asyncio.run(work())


@pytest.mark.parametrize("wrong", [{"version": "5"}, {"status": "flapping"}, {"groupKey": None}])
def test_something_else_than_version_4_is_refused(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(ValidationError):
        payload(alert(), **wrong)


@pytest.mark.parametrize("wrong", [True, "3", 3.5, -1])
def test_a_number_of_alerts_is_a_whole_number(wrong: object) -> None:
    assert payload(alert(), truncatedAlerts=3.0).truncated_alerts == 3, "which an integer in JSON may look like"
    with pytest.raises(ValidationError, match="truncatedAlerts"):
        payload(alert(), truncatedAlerts=wrong)


def test_alerts_that_alertmanager_left_out_are_told() -> None:
    async def work() -> None:
        async with inbound(fleet(diagnosis())) as (alerting, _):
            assert (await alerting.inbound.receive(payload(alert(), truncatedAlerts=7))).truncated == 7

    asyncio.run(work())


def test_forwarding_to_nobody_or_in_a_circle_is_an_error_of_the_configuration() -> None:
    settings = notify(receivers=[HOOK, {"name": "am", "alertmanager": {"url": "http://127.0.0.1:9"}}])
    check(settings, WebhookSettings(forward=("hook",)))
    with pytest.raises(UsageError, match="names nobody, which is no receiver"):
        check(settings, WebhookSettings(forward=("nobody",)))
    with pytest.raises(UsageError, match="its alerts would come back here"):
        check(settings, WebhookSettings(forward=("am",)))
