"""At least once, in order, never lost: the outbox against real HTTP servers that fail in every way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from diagnoser.service.notify.fields import Rate
from diagnoser.service.notify.pace import Backoff, Bucket
from diagnoser.service.outbox import Outbox

from .alert_kit import START, Clock, Receiver, item, opened, receiver, running, until, webhook


def test_a_message_is_done_when_its_receiver_took_it(tmp_path: Path) -> None:
    async def work(hook: Receiver) -> None:
        async with opened(tmp_path / "d.db") as history, running(history, webhook("hook", hook.url)) as outbox:
            await outbox.add([item("a"), item("a")])
            got = await hook.next()
            assert (got.headers["Idempotency-Key"], got.headers["X-Diagnoser-Attempt"]) == ("a", "1")
            (done,) = await until(lambda: history.outbox_list("done", 10))
            assert (done.id, done.attempts, done.error) == ("a", 1, "")
            await outbox.add([item("a"), item("b")])
            assert (await hook.next()).headers["Idempotency-Key"] == "b"
            await until(lambda: history.outbox_list("done", 10))
            await outbox.recount()
            assert (outbox.dead, hook.arrived.qsize()) == (0, 0)

    with receiver() as hook:
        asyncio.run(work(hook))


@pytest.mark.parametrize("failure", ["close", (500, {}), (503, {}), (408, {}), (429, {})], ids=str)
def test_what_may_succeed_later_is_tried_again_under_the_same_key(failure: object) -> None:
    async def work(hook: Receiver) -> None:
        async with opened() as history, running(history, webhook("hook", hook.url)) as outbox:
            await outbox.add([item("a")])
            seen = [await hook.next() for _ in range(4)]
            assert {got.headers["Idempotency-Key"] for got in seen} == {"a"}
            assert [got.headers["X-Diagnoser-Attempt"] for got in seen] == ["1", "2", "3", "4"]
            assert [got.json["attempt"] for got in seen] == [1, 2, 3, 4]
            (done,) = await until(lambda: history.outbox_list("done", 10))
            assert done.attempts == 4

    with receiver(failure, failure, failure) as hook:  # type: ignore[arg-type]
        asyncio.run(work(hook))


def test_a_server_that_is_not_there_yet_gets_it_later() -> None:
    async def work(hook: Receiver) -> None:
        async with opened() as history, running(history, webhook("hook", "http://127.0.0.1:9")) as outbox:
            await outbox.add([item("a")])
            await until(lambda: outbox.problems())
            assert outbox.problems() == ("the receiver hook fails: the connection failed (ConnectError)",)
            await outbox.use({"hook": webhook("hook", hook.url)})
            assert (await hook.next()).headers["Idempotency-Key"] == "a"

    with receiver() as hook:
        asyncio.run(work(hook))


def test_retry_after_is_honoured() -> None:
    async def work(hook: Receiver, clock: Clock) -> None:
        async with opened() as history, running(history, webhook("hook", hook.url), clock=clock) as outbox:
            await outbox.add([item("a")])
            await hook.next()
            await until(lambda: outbox.problems())
            (waiting,) = await history.outbox_list("pending", 10)
            assert waiting.next_at == START + 120
            assert waiting.error == "it answered 429"
            await outbox.add([item("b")])
            clock.now = START + 119
            await outbox.drain(5)
            assert hook.arrived.empty()
            clock.now = START + 120
            await outbox.drain(5)
            assert {(await hook.next()).headers["Idempotency-Key"] for _ in "ab"} == {"a", "b"}

    with receiver((429, {"Retry-After": "120"})) as hook:
        asyncio.run(work(hook, Clock()))


@pytest.mark.parametrize("status", [400, 401, 404, 410, 413, 301])
def test_a_refusal_for_good_is_dead_with_the_reason_and_can_be_tried_again(status: int) -> None:
    async def work(hook: Receiver) -> None:
        async with opened() as history, running(history, webhook("hook", hook.url)) as outbox:
            await outbox.add([item("a"), item("b")])
            await hook.next()
            assert (await hook.next()).headers["Idempotency-Key"] == "b"
            (dead,) = await until(outbox.dead_items)
            await until(lambda: history.outbox_list("done", 10))
            assert (dead.id, dead.error) == ("a", f"it answered {status}")
            await outbox.recount()
            assert outbox.problems() == ("1 message was given up: see the outbox's dead items.",)
            assert not await outbox.requeue("b")
            assert await outbox.requeue("a")
            again = await hook.next()
            assert (again.headers["Idempotency-Key"], again.headers["X-Diagnoser-Attempt"]) == ("a", "2")
            assert await until(lambda: _no_dead(outbox))

    with receiver((status, {"Location": "http://127.0.0.1:9/"})) as hook:
        asyncio.run(work(hook))


async def _no_dead(outbox: Outbox) -> bool:
    return await outbox.dead_items() == []


def test_a_receiver_that_hangs_delays_no_other() -> None:
    async def work(slow: Receiver, fast: Receiver) -> None:
        notifiers = (webhook("slow", slow.url, timeout="60s"), webhook("hook", fast.url))
        async with opened() as history, running(history, *notifiers) as outbox:
            await outbox.add([item("s", "slow")])
            await slow.next()
            await outbox.add([item(f"f{i}") for i in range(150)] + [item(f"s{i}", "slow") for i in range(150)])
            got = [(await fast.next()).headers["Idempotency-Key"] for _ in range(150)]
            assert got == [f"f{i}" for i in range(150)]
            assert not slow.over.is_set()

    with receiver("hang") as slow, receiver() as fast:
        asyncio.run(work(slow, fast))


def test_no_answer_in_time_is_tried_again() -> None:
    async def work(hook: Receiver) -> None:
        async with opened() as history, running(history, webhook("hook", hook.url, timeout="200ms")) as outbox:
            await outbox.add([item("a")])
            assert [(await hook.next()).json["attempt"] for _ in "12"] == [1, 2]
            await until(lambda: history.outbox_list("done", 10))

    with receiver("hang") as hook:
        asyncio.run(work(hook))


def test_what_is_said_later_of_a_subject_arrives_later(tmp_path: Path) -> None:
    """Also when the first attempt fails, and when the process was started anew in between."""

    async def first(hook: Receiver) -> None:
        slow = Backoff(3600, 3600)
        async with (
            opened(tmp_path / "d.db") as history,
            running(history, webhook("hook", hook.url), backoff=slow) as outbox,
        ):
            await outbox.add([item("firing", subject="x")])
            await hook.next()
            await until(lambda: outbox.problems())
            await outbox.add([item("resolved", subject="x", at=START + 1)])

    async def second(hook: Receiver) -> None:
        clock = Clock(START + 10)
        async with opened(tmp_path / "d.db") as history:
            (stuck, _) = await history.outbox_due(float("inf"), 2)
            sql = "UPDATE outbox SET next_at = ? WHERE id = 'firing'"
            await history.transact(lambda db: db.execute(sql, (START + 100,)))
            async with running(history, webhook("hook", hook.url), clock=clock) as outbox:
                await outbox.drain(5)
                assert hook.arrived.empty(), stuck
                await outbox.add([item("other", at=START)])
                assert (await hook.next()).headers["Idempotency-Key"] == "other"
                clock.now = START + 101
                await outbox.drain(5)
                assert [(await hook.next()).headers["Idempotency-Key"] for _ in "12"] == ["firing", "resolved"]

    with receiver((500, {})) as hook:
        asyncio.run(first(hook))
        asyncio.run(second(hook))


def test_what_is_above_the_rate_comes_in_one_message() -> None:
    async def work(hook: Receiver, clock: Clock) -> None:
        limited = webhook("hook", hook.url, Rate(count=2, seconds=3600))
        async with opened() as history, running(history, limited, clock=clock) as outbox:
            await outbox.add([item(f"m{i}", at=START + i / 100) for i in range(7)])
            clock.now = START + 1
            await outbox.drain(5)
            assert [(await hook.next()).headers["Idempotency-Key"] for _ in "12"] == ["m0", "m1"]
            assert hook.arrived.empty()
            clock.now = START + 1801
            await outbox.drain(5)
            digest = (await hook.next()).json
            assert (digest["kind"], digest["title"]) == ("digest", "5 messages in one (rate limit)")
            assert len(digest["messages"]) == 5
            assert all(part["events"][0]["headline"] == "L1-BOUND (preempting), L2 idle" for part in digest["messages"])
            done = {one.id: one.error for one in await history.outbox_list("done", 10)}
            assert done["m4"] == f"merged into {digest['id']} by the rate limit"
            assert await history.outbox_list("pending", 10) == []

    with receiver() as hook:
        asyncio.run(work(hook, Clock()))


def test_a_storm_is_one_message_and_failed_attempts_do_not_count() -> None:
    async def work(hook: Receiver, clock: Clock) -> None:
        limited = webhook("hook", hook.url, Rate(count=1, seconds=3600))
        async with opened() as history, running(history, limited, clock=clock) as outbox:
            await outbox.add([item(f"m{i}", at=START + i / 1000) for i in range(400)])
            clock.now = START + 1
            await until(lambda: outbox.problems())
            clock.now += 1
            await outbox.drain(5)
            got = [await hook.next() for _ in "12"]
            assert {one.headers["Idempotency-Key"] for one in got} <= {"m0", "m1"}
            clock.now += 3600
            await outbox.drain(5)
            again = await hook.next()
            assert (again.headers["Idempotency-Key"], again.json["attempt"]) == ("m0", 2)
            clock.now += 3600
            await outbox.drain(5)
            assert len((await hook.next()).json["messages"]) == 398
            assert await history.outbox_list("pending", 10) == []

    with receiver((500, {})) as hook:
        asyncio.run(work(hook, Clock()))


def test_a_reload_lets_nothing_more_through() -> None:
    async def work(hook: Receiver, clock: Clock) -> None:
        rate = Rate(count=1, seconds=3600)
        async with opened() as history, running(history, webhook("hook", hook.url, rate), clock=clock) as outbox:
            await outbox.add([item("a")])
            await hook.next()
            await until(lambda: history.outbox_list("done", 1))
            await outbox.use({"hook": webhook("hook", hook.url, rate)})
            await outbox.add([item("b")])
            await outbox.drain(1)
            assert hook.arrived.empty()
            await outbox.use({"hook": webhook("hook", hook.url, Rate(count=2, seconds=3600))})
            assert (await hook.next()).headers["Idempotency-Key"] == "b"

    with receiver() as hook:
        asyncio.run(work(hook, Clock()))


def test_a_restart_lets_nothing_more_through(tmp_path: Path) -> None:
    async def work(hook: Receiver, clock: Clock) -> None:
        for name in ("a", "b", "c"):
            limited = webhook("hook", hook.url, Rate(count=2, seconds=3600))
            async with opened(tmp_path / "d.db") as history, running(history, limited, clock=clock) as outbox:
                await outbox.add([item(name)])
                await outbox.drain(5)
                assert len(await history.outbox_list("pending", 10)) == (name == "c")
        assert [(await hook.next()).headers["Idempotency-Key"] for _ in "12"] == ["a", "b"]
        assert hook.arrived.empty()

    with receiver() as hook:
        asyncio.run(work(hook, Clock()))


def test_a_bucket_lets_count_through_and_then_one_at_a_time() -> None:
    bucket = Bucket(Rate(count=3, seconds=60), 0.0)
    passed = 0
    while bucket.wait(0.0) == 0:
        bucket.take()
        passed += 1
    assert (passed, bucket.wait(0.0), bucket.wait(19.0), bucket.wait(20.0)) == (3, 20.0, pytest.approx(1.0), 0.0)
    assert Bucket(None, 0.0).wait(0.0) == 0


def test_back_off_doubles_with_jitter_up_to_a_limit() -> None:
    backoff = Backoff(1.0, 300.0)
    for failures, top in ((1, 1.0), (2, 2.0), (5, 16.0), (12, 300.0), (10_000, 300.0)):
        waits = [backoff.after(failures) for _ in range(50)]
        assert top / 2 <= min(waits) < max(waits) <= top


def test_a_receiver_that_left_the_configuration_leaves_its_messages_with_the_reason() -> None:
    async def work() -> None:
        async with opened() as history:
            await history.outbox_add([item("a", "gone")])
            async with running(history) as outbox:
                (dead,) = await until(outbox.dead_items)
                assert dead.error == "no receiver is named gone in the configuration any more"

    asyncio.run(work())


def test_what_is_being_sent_at_the_stop_is_not_sent_twice() -> None:
    async def work(hook: Receiver) -> None:
        async with opened() as history:
            outbox = Outbox(history, {"hook": webhook("hook", hook.url)})
            running = asyncio.create_task(outbox.run())
            await outbox.add([item("a"), item("b")])
            await hook.next()
            running.cancel()
            hook.over.set()
            await asyncio.gather(running, return_exceptions=True)
            await outbox.drain(5)
            await outbox.close()
            done = {one.id: one.attempts for one in await history.outbox_list("done", 10)}
            assert done == {"a": 1, "b": 1}

    with receiver("slow") as hook:
        asyncio.run(work(hook))


def test_draining_keeps_to_its_deadline_and_leaves_the_rest_on_disk(tmp_path: Path) -> None:
    async def stop(hook: Receiver) -> None:
        async with opened(tmp_path / "d.db") as history:
            outbox_of = running(history, webhook("hook", hook.url, timeout="60s"))
            async with outbox_of as outbox:
                await outbox.add([item("a"), item("b")])
                await hook.next()
                await outbox.drain(0.05)
                assert outbox.depth == 2

    async def start(hook: Receiver) -> None:
        async with opened(tmp_path / "d.db") as history, running(history, webhook("hook", hook.url)):
            got = {
                (one.headers["Idempotency-Key"], one.json["attempt"]) for one in [await hook.next(), await hook.next()]
            }
            assert got == {("a", 2), ("b", 1)}

    with receiver("hang") as hook:
        asyncio.run(stop(hook))
        hook.over.set()
        asyncio.run(start(hook))
