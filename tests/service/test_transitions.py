"""When a verdict is told, to whom, in how many messages, and when not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diagnoser.model import Diagnosis
from diagnoser.service.alerting import Alerting
from diagnoser.service.board import Key
from diagnoser.service.history import History
from diagnoser.service.inbound_settings import WebhookSettings
from diagnoser.service.notify.event import Event, Message
from diagnoser.service.notify.silences import NewSilence
from diagnoser.service.notify.watch import State, Times, Watch, step

from .alert_kit import START, Clock, Engines, Receiver, diagnosis, entry, notify, opened, receiver

HOOK = {"name": "hook", "webhook": {"url": "http://127.0.0.1:9"}}
AM = {"name": "am", "alertmanager": {"url": "http://127.0.0.1:9"}}
EVERY = 5.0


@dataclass
class Watched:
    """A watchdog that sees a story: what each engine rank says at each evaluation."""

    alerting: Alerting
    history: History
    clock: Clock
    since: dict[Key, tuple[object, float]] = field(default_factory=dict)

    async def sees(self, seconds: float, *found: Diagnosis) -> None:
        """The same for so many seconds, an evaluation every five."""
        for _ in range(round(seconds / EVERY)):
            self.clock.now += EVERY
            entries = []
            for one in found:
                key, state = Key(one.engine.target, one.engine.rank), (one.verdict.bottleneck, one.verdict.severity)
                if self.since.get(key, (None, 0.0))[0] != state:
                    self.since[key] = state, self.clock.now
                entries.append(entry(one, self.since[key][1]))
            await self.alerting.saw(entries, self.clock.now)

    async def told(self) -> list[tuple[str, Message]]:
        """(receiver, message) since the last call."""
        due = await self.history.outbox_due(float("inf"), 1000)
        for item in due:
            await self.history.outbox_update(item.id, state="done", attempts=1, next_at=0.0, error="")
        return [(item.receiver, Message.from_json(item.payload)) for item in due]

    async def lines(self) -> list[str]:
        """The same in short."""
        return [f"{receiver}: {short(message.events)}" for receiver, message in await self.told()]


def short(events: Sequence[Event]) -> str:
    return ", ".join(f"{e.kind} {e.bottleneck} {e.severity} {e.target}" for e in events)


@asynccontextmanager
async def watched(path: Path | None = None, clock: Clock | None = None, **settings: Any) -> AsyncIterator[Watched]:
    """By default every receiver gets a message an engine rank at once."""
    names = [one["name"] for one in settings.get("receivers", [HOOK])]
    settings = {"routes": [{"receivers": names, "group_by": []}], **settings}
    time = clock or Clock()
    async with opened(path) as history:
        engines = Engines(labels={"b:8000": {"job": "vllm", "team": "chat"}})
        made = await Alerting.open(
            notify(**{"receivers": [HOOK], **settings}),
            WebhookSettings(),
            history,
            engines,
            "http://127.0.0.1:9180",
            clock=time,
        )
        yield Watched(made, history, time)
        await made.close()


L1, NONE = diagnosis("l1", target="a:8000"), diagnosis("none", target="a:8000")
WARNING = diagnosis("l1", "warning", target="a:8000")
SLOTS, UNKNOWN = diagnosis("slots", target="a:8000"), diagnosis("unknown", "warning", target="a:8000")


# ---------------------------------------------------------------- `for`


def test_only_what_lasts_is_told_and_its_end_too() -> None:
    async def work() -> None:
        async with watched() as dog:
            await dog.sees(60, L1)
            assert await dog.lines() == []
            await dog.sees(10, L1)
            ((receiver, message),) = await dog.told()
            (firing,) = message.events
            assert (receiver, short([firing])) == ("hook", "firing l1 critical a:8000")
            assert (firing.starts_at, firing.share) == (START + 5, 0.92)
            assert firing.url == "http://127.0.0.1:9180/api/v1/engines/a%3A8000%2F0"
            assert firing.runbook_url == "http://127.0.0.1:9180/api/v1/rules/verdicts/l1_preempting"
            await dog.sees(600, L1)
            await dog.sees(60, NONE)
            assert await dog.lines() == []
            await dog.sees(10, NONE)
            ((_, message),) = await dog.told()
            (end,) = message.events
            assert (end.kind, end.alert, end.reason) == ("resolved", firing.alert, "recovered")
            assert end.ends_at == dog.clock.now - 5
            assert end.now == {"rule": "healthy", "headline": "NO BOTTLENECK", "l2": "idle_space"}
            await dog.sees(600, NONE)
            assert await dog.lines() == []

    asyncio.run(work())


def test_a_short_one_is_told_to_nobody_nor_a_short_recovery() -> None:
    async def work() -> None:
        async with watched() as dog:
            await dog.sees(55, L1)
            await dog.sees(5, NONE)
            await dog.sees(55, L1)
            assert await dog.lines() == []
            await dog.sees(15, L1)
            assert await dog.lines() == ["hook: firing l1 critical a:8000"]
            await dog.sees(55, NONE)
            await dog.sees(5, L1)
            await dog.sees(55, NONE)
            assert await dog.lines() == []

    asyncio.run(work())


def test_a_mixture_of_bad_verdicts_that_lasts_is_told() -> None:
    async def work() -> None:
        async with watched() as dog:
            for _ in range(3):
                await dog.sees(20, L1)
                await dog.sees(20, SLOTS)
            assert await dog.lines() == ["hook: firing slots critical a:8000"]

    asyncio.run(work())


def test_another_verdict_takes_the_place_in_one_message() -> None:
    async def work() -> None:
        async with watched() as dog:
            await dog.sees(70, WARNING)
            await dog.sees(70, L1)
            first, second = await dog.lines()
            assert first == "hook: firing l1 warning a:8000"
            assert second == "hook: resolved l1 warning a:8000, firing l1 critical a:8000"

    asyncio.run(work())


def test_unknown_is_not_over() -> None:
    async def work() -> None:
        async with watched() as dog:
            await dog.sees(70, L1)
            await dog.sees(600, UNKNOWN)
            await dog.sees(50, NONE)
            assert await dog.lines() == ["hook: firing l1 critical a:8000"]
            await dog.sees(30, NONE)
            assert await dog.lines() == ["hook: resolved l1 critical a:8000"]
            await dog.sees(70, UNKNOWN)
            assert await dog.lines() == ["hook: firing unknown warning a:8000"]
            await dog.sees(70, L1)
            assert await dog.lines() == ["hook: resolved unknown warning a:8000, firing l1 critical a:8000"]

    asyncio.run(work())


def test_the_state_machine_counts_from_when_the_verdict_began() -> None:
    times, bad = Times(60, 30), State("l1", "critical")
    assert step(Watch(), bad, since=100, now=1000, times=times).want == bad
    assert step(Watch(), bad, since=950, now=1000, times=times).want is None
    assert step(Watch(told=bad), "good", since=969, now=1000, times=times).want is None
    assert step(Watch(told=bad), "good", since=971, now=1000, times=times).want == bad
    assert step(Watch(told=bad), "blind", since=0, now=1000, times=times).want == bad


# ---------------------------------------------------------------- routes and groups


def test_routes_choose_by_severity_model_target_label_and_bottleneck() -> None:
    receivers = [{**HOOK, "name": name} for name in ("all", "bad", "chat", "dead")]
    routes = [
        {"receivers": ["all"], "for": "5s", "group_by": []},
        {"receivers": ["bad"], "for": "5s", "group_by": [], "min_severity": "critical", "models": ["llama*"]},
        {"receivers": ["chat"], "for": "5s", "group_by": [], "match": {"team": "chat"}},
        {"receivers": ["dead"], "for": "5s", "group_by": [], "bottlenecks": ["unreachable"]},
    ]

    async def work() -> None:
        async with watched(receivers=receivers, routes=routes) as dog:
            other = diagnosis("l1", target="c:8000", model="qwen")
            await dog.sees(
                10, WARNING, diagnosis("slots", target="b:8000"), other, diagnosis("unreachable", target="d:1")
            )
            by_receiver: dict[str, set[str]] = {}
            for receiver, message in await dog.told():
                by_receiver.setdefault(receiver, set()).update(e.target for e in message.events)
            assert by_receiver == {
                "all": {"a:8000", "b:8000", "c:8000", "d:1"},
                "bad": {"b:8000", "d:1"},
                "chat": {"b:8000"},
                "dead": {"d:1"},
            }

    asyncio.run(work())


def test_a_receiver_is_told_by_the_first_of_its_routes_that_wants_the_verdict() -> None:
    routes = [
        {"receivers": ["hook"], "for": "10s", "min_severity": "critical", "group_by": []},
        {"receivers": ["hook"], "for": "100s", "bottlenecks": ["l1"], "group_by": []},
    ]

    async def work() -> None:
        async with watched(routes=routes) as dog:
            other = diagnosis("slots", "warning", target="b:8000")
            await dog.sees(100, WARNING, other)
            assert await dog.lines() == []
            await dog.sees(10, WARNING, other)
            assert await dog.lines() == ["hook: firing l1 warning a:8000"]
            await dog.sees(15, L1, other)
            assert await dog.lines() == ["hook: resolved l1 warning a:8000, firing l1 critical a:8000"]
            await dog.sees(15, NONE, other)
            assert await dog.lines() == ["hook: resolved l1 critical a:8000"]

    asyncio.run(work())


def test_what_begins_together_is_one_message_a_group() -> None:
    routes = [{"receivers": ["hook"], "for": "10s", "group_by": ["model"], "group_wait": "15s"}]

    async def work() -> None:
        async with watched(routes=routes) as dog:
            first = diagnosis("l1", target="a:8000")
            await dog.sees(15, first)
            assert await dog.lines() == []
            others = [diagnosis("l1", target=f"b{i}:8000") for i in range(3)]
            lone = diagnosis("slots", target="z:8000", model="qwen")
            await dog.sees(15, first, *others, lone)
            ((_, message),) = await dog.told()
            assert message.group == {"model": "llama-3-70b"}
            assert {event.target for event in message.events} == {"a:8000", "b0:8000", "b1:8000", "b2:8000"}
            await dog.sees(15, first, *others, lone)
            assert await dog.lines() == ["hook: firing slots critical z:8000"]

    asyncio.run(work())


def test_an_end_is_not_sent_to_who_wants_none() -> None:
    async def work() -> None:
        async with watched(receivers=[{**HOOK, "send_resolved": False}]) as dog:
            await dog.sees(70, L1)
            await dog.sees(70, NONE)
            await dog.sees(70, SLOTS)
            assert await dog.lines() == ["hook: firing l1 critical a:8000", "hook: firing slots critical a:8000"]

    asyncio.run(work())


def test_an_engine_that_is_watched_no_more_is_over() -> None:
    async def work() -> None:
        async with watched() as dog:
            await dog.sees(70, L1, diagnosis("none", target="b:8000"))
            await dog.sees(50, diagnosis("none", target="b:8000"))
            assert await dog.lines() == ["hook: firing l1 critical a:8000"]
            await dog.sees(20, diagnosis("none", target="b:8000"))
            ((_, message),) = await dog.told()
            assert (message.events[0].kind, message.events[0].reason) == ("resolved", "gone")

    asyncio.run(work())


# ---------------------------------------------------------------- silences


def test_a_silence_keeps_new_alerts_back_and_they_are_kept() -> None:
    async def work() -> None:
        async with watched() as dog:
            wish = NewSilence.model_validate({"match": {"target": "a:*"}, "until": START + 300, "comment": "upgrade"})
            silence = await dog.alerting.silences.add(wish)
            await dog.sees(120, L1)
            assert await dog.lines() == []
            (kept,) = await dog.alerting.outbox.silenced_items()
            assert (kept.kind, kept.error) == ("silenced", f"silenced by {silence.id} (api): upgrade")
            assert short(Message.from_json(kept.payload).events) == "firing l1 critical a:8000"
            await dog.sees(200, L1)
            assert await dog.lines() == ["hook: firing l1 critical a:8000"]

    asyncio.run(work())


def test_what_comes_and_goes_in_a_silence_is_never_sent() -> None:
    async def work() -> None:
        async with watched(silences=[{"match": {"model": "llama*"}, "until": START + 300}]) as dog:
            await dog.sees(120, L1)
            await dog.sees(300, NONE)
            assert await dog.lines() == []
            await dog.sees(70, L1)
            assert await dog.lines() == ["hook: firing l1 critical a:8000"]

    asyncio.run(work())


def test_in_a_silence_only_alertmanager_is_told_an_end() -> None:
    async def work() -> None:
        async with watched(receivers=[HOOK, AM]) as dog:
            await dog.sees(70, L1)
            assert await dog.lines() == ["hook: firing l1 critical a:8000", "am: firing l1 critical a:8000"]
            await dog.alerting.silences.add(
                NewSilence.model_validate({"match": {"target": "*"}, "until": dog.clock.now + 200})
            )
            await dog.sees(100, NONE)
            assert await dog.lines() == ["am: resolved l1 critical a:8000"]
            await dog.sees(110, NONE)
            assert await dog.lines() == ["hook: resolved l1 critical a:8000"]

    asyncio.run(work())


def test_silences_are_seen_end_and_survive_a_restart(tmp_path: Path) -> None:
    configured = [{"match": {"target": "z"}, "until": "2099-01-01T00:00:00Z", "comment": "moved"}]

    async def first() -> str:
        async with watched(tmp_path / "d.db", silences=configured) as dog:
            added = await dog.alerting.silences.add(
                NewSilence.model_validate({"match": {"rank": "1"}, "until": START + 60})
            )
            gone = await dog.alerting.silences.add(
                NewSilence.model_validate({"match": {"rank": "2"}, "until": START + 60})
            )
            assert await dog.alerting.silences.end(gone.id)
            assert not await dog.alerting.silences.end(gone.id)
            assert not await dog.alerting.silences.end("nobody")
            return added.id

    async def second(added: str) -> None:
        async with watched(tmp_path / "d.db", silences=configured) as dog:
            config, api = dog.alerting.silences.list()
            assert (config.source, config.comment, api.source, api.id) == ("configuration", "moved", "api", added)
            assert not await dog.alerting.silences.end(config.id)
            assert [one.id for one in dog.alerting.silences.list(START + 60)] == [config.id]

    asyncio.run(second(asyncio.run(first())))


# ---------------------------------------------------------------- restarts


def test_after_a_restart_nothing_is_told_twice_and_the_end_still_comes(tmp_path: Path) -> None:
    async def first() -> tuple[float, Event]:
        async with watched(tmp_path / "d.db") as dog:
            await dog.sees(70, L1)
            ((_, message),) = await dog.told()
            return dog.clock.now, message.events[0]

    async def second(now: float, firing: Event) -> None:
        async with watched(tmp_path / "d.db", Clock(now)) as dog:
            assert dog.alerting.watchdog.firing == {("hook", Key("a:8000", "0")): firing}
            await dog.sees(600, L1)
            assert await dog.lines() == []
            await dog.sees(70, NONE)
            ((_, message),) = await dog.told()
            assert (message.events[0].kind, message.events[0].alert) == ("resolved", firing.alert)

    asyncio.run(second(*asyncio.run(first())))


def test_a_receiver_that_was_removed_is_forgotten(tmp_path: Path) -> None:
    async def work() -> None:
        async with watched(tmp_path / "d.db") as dog:
            await dog.sees(70, L1)
            assert await dog.lines() == ["hook: firing l1 critical a:8000"]
            routes = [{"receivers": ["other"], "group_by": []}]
            await dog.alerting.use(
                notify(receivers=[{**HOOK, "name": "other"}], routes=routes), WebhookSettings(), "http://x"
            )
            await dog.sees(70, L1)
            assert await dog.lines() == ["other: firing l1 critical a:8000"]
            assert set(dog.alerting.watchdog.firing) == {("other", Key("a:8000", "0"))}

    asyncio.run(work())


def test_without_routes_everybody_is_told_by_model() -> None:
    async def work() -> None:
        async with watched(routes=[]) as dog:
            await dog.sees(70, L1, diagnosis("slots", target="b:8000"))
            assert await dog.lines() == []
            await dog.sees(10, L1, diagnosis("slots", target="b:8000"))
            assert await dog.lines() == ["hook: firing l1 critical a:8000, firing slots critical b:8000"]

    asyncio.run(work())


def test_a_receiver_that_comes_back_is_told_again() -> None:
    async def work() -> None:
        async with watched() as dog:
            routes = [{"receivers": ["hook"], "group_by": []}]
            await dog.sees(70, L1)
            assert await dog.lines() == ["hook: firing l1 critical a:8000"]
            await dog.alerting.use(notify(), WebhookSettings(), "http://x")
            await dog.sees(10, L1)
            await dog.alerting.use(notify(receivers=[HOOK], routes=routes), WebhookSettings(), "http://x")
            await dog.sees(70, L1)
            assert await dog.lines() == ["hook: firing l1 critical a:8000"]

    asyncio.run(work())


def test_halves_of_characters_in_a_label_stop_nobody() -> None:
    async def work(hook: Receiver) -> None:
        receivers = [
            {"name": name, kind: {"url": hook.url}} for name, kind in (("hook", "webhook"), ("am", "alertmanager"))
        ]
        async with watched(receivers=receivers) as dog:
            await dog.sees(70, diagnosis(target="a:8000", model="half \udcff"))
            await dog.alerting.drain(10)
            got = {one.path: one.body.decode() for one in hook.so_far()}  # Alertmanager's may have come twice
            assert "half ?" in got["/"]
            assert "half ?" in got["/api/v2/alerts"]

    with receiver() as hook:
        asyncio.run(work(hook))


def test_with_a_full_disk_alerts_still_go_out_once() -> None:
    async def work() -> None:
        async with watched() as dog:
            await dog.history.transact(lambda db: db.execute("DROP TABLE told"))
            await dog.sees(200, L1)
            assert await dog.lines() == ["hook: firing l1 critical a:8000"]

    asyncio.run(work())


def test_what_another_version_wrote_does_not_stop_the_start(tmp_path: Path) -> None:
    async def work() -> None:
        async with watched(tmp_path / "d.db") as dog:
            await dog.sees(70, L1)
            sql = "INSERT INTO told (receiver, target, rank, body) VALUES ('hook', 'b', '0', ?)"
            await dog.history.transact(lambda db: db.execute(sql, ('{"kind": "firing"}',)))
            newer = "UPDATE told SET body = json_set(body, '$.new_field', 1) WHERE target = 'a:8000'"
            await dog.history.transact(lambda db: db.execute(newer))
        async with watched(tmp_path / "d.db") as dog:
            assert set(dog.alerting.watchdog.firing) == {("hook", Key("a:8000", "0"))}

    asyncio.run(work())
