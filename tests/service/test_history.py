"""The history file: what was acknowledged is there after kill -9, and a bad disk is told, never raised."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from diagnoser.model import Diagnosis, SignalValue
from diagnoser.service.board import Board, Key, Transition
from diagnoser.service.history import KEY_SIGNALS, History, HistoryError, OutboxItem, WebhookResult
from diagnoser.service.migrations import STEPS
from diagnoser.service.store import outbox
from service.test_board import said

T = TypeVar("T")
DAY = 86400.0
T0 = 1_795_976_000.0
"""A full minute."""
A, B = Key("a", "0"), Key("b", "0")


def using(
    path: Path | None, work: Callable[[History], Awaitable[T]], *, retention: float = 7 * DAY, size: int = 2**30
) -> T:
    """Opens the history, works with it, closes it."""

    async def scenario() -> T:
        history = await History.open(path, retention, size)
        try:
            return await work(history)
        finally:
            await history.close()

    return asyncio.run(scenario())


def with_signals(diagnosis: Diagnosis, **values: float) -> Diagnosis:
    return replace(diagnosis, signals={name: SignalValue(name, "", value) for name, value in values.items()})


def item(number: int, receiver: str = "am", next_at: float = 1.0, payload: str = "{}") -> OutboxItem:
    return OutboxItem(f"id-{number}", receiver, "verdict", payload, float(number), next_at)


async def rounds(history: History, board: Board, *batches: list[Diagnosis]) -> list[Transition]:
    """Rounds of evaluation as the service does them."""
    return [one for batch in batches for one in await history.record(batch, board.put(batch))]


# ---------------------------------------------------------------- what it remembers


@pytest.mark.parametrize("where", ["file", "memory"])
def test_verdicts_signals_and_transitions_come_back(tmp_path: Path, where: str) -> None:
    path = tmp_path / "new" / "h.db" if where == "file" else None

    async def story(history: History) -> None:
        calm = [with_signals(said("a", at=T0 + i), waiting_max_requests=i) for i in (0, 30)]
        bound = said("a", "l1", "reservation", "warning", at=T0 + 40)
        again = with_signals(said("a", at=T0 + 61), waiting_max_requests=5)
        stored = await rounds(history, Board(), [calm[0], said("b", at=T0)], [calm[1]], [bound], [again])
        assert [one.id for one in stored] == [1, 2, 3, 4]
        assert await history.transitions(T0, T0 + 100) == stored
        assert await history.transitions(T0, T0 + 100, A, after_id=1, limit=1) == [stored[2]]
        assert await history.last_transitions() == [stored[1], stored[3]]
        points = await history.verdicts(A, T0, T0 + 100, 60)
        assert [(p.at, p.key, p.bottleneck, p.mode, p.severity) for p in points] == [
            (T0, A, "l1", "reservation", "warning"),  # the worst of its minute
            (T0 + 60, A, "none", None, "info"),
        ]
        assert points[0].headline == "l1 of a"
        assert len(await history.verdicts(None, T0, T0 + 100, 60)) == 3
        signals = await history.signals(A, ["waiting_max_requests", "rho"], T0, T0 + 100, 60)
        assert signals == {"waiting_max_requests": [(T0, 15.0), (T0 + 60, 5.0)], "rho": [(T0, None), (T0 + 60, None)]}

    using(path, story)


def test_ids_go_on_after_a_restart(tmp_path: Path) -> None:
    async def one_round(history: History) -> list[Transition]:
        return await rounds(history, Board(), [said("a", at=T0)])

    assert [using(tmp_path / "h.db", one_round)[0].id for _ in range(3)] == [1, 2, 3]


def test_an_evaluation_is_kept_every_fifteen_seconds_and_when_it_changes(tmp_path: Path) -> None:
    async def story(history: History) -> None:
        verdicts = ["none"] * 30 + ["l1", "none"]
        await rounds(history, Board(), *([said("a", name, at=T0 + i)] for i, name in enumerate(verdicts)))

    using(tmp_path / "h.db", story)
    rows = sqlite3.connect(tmp_path / "h.db").execute("SELECT at FROM evaluations").fetchall()
    assert [at - T0 for (at,) in rows] == [0.0, 15.0, 30.0, 31.0]


def test_every_signal_that_is_kept_exists() -> None:
    from diagnoser.signals.base import signals

    assert set(KEY_SIGNALS) <= {one.name for one in signals()}


def test_the_outbox_is_idempotent_and_in_order(tmp_path: Path) -> None:
    async def story(history: History) -> None:
        await history.outbox_add([item(1, next_at=5.0), item(2, next_at=3.0), item(3, "hook")])
        await history.outbox_add([replace(item(1), payload='"again"')])
        assert [one.id for one in await history.outbox_due(10.0, 10)] == ["id-3", "id-2", "id-1"]
        assert [one.id for one in await history.outbox_due(4.0, 10, "am")] == ["id-2"]
        await history.outbox_update("id-2", state="done", attempts=1, next_at=0.0, error="")
        await history.outbox_update("id-3", state="pending", attempts=1, next_at=99.0, error="503")
        assert [one.id for one in await history.outbox_due(10.0, 10)] == ["id-1"]
        await history.outbox_add([item(2)])
        assert [one.id for one in await history.outbox_due(10.0, 10)] == ["id-1"], "delivered once is delivered"
        assert await history.outbox_counts() == {"done": 1, "pending": 2}
        assert [one.id for one in await history.outbox_list("pending", 10)] == ["id-3", "id-1"]

    using(tmp_path / "h.db", story)


def test_what_cannot_be_written_spoils_nothing_else(tmp_path: Path) -> None:
    async def story(history: History) -> None:
        for wrong in ("half of a character: \ud800", 2**70):
            with pytest.raises((UnicodeEncodeError, OverflowError)):
                await history.transact(
                    lambda db, wrong=wrong: db.execute("INSERT INTO silences VALUES (?, 1, '')", [wrong])
                )
            with pytest.raises((UnicodeEncodeError, OverflowError)):
                await history.outbox_add([item(1), replace(item(2), payload=wrong)])  # type: ignore[arg-type]
            assert await history.outbox_due(T0, 10) == [] and history.healthy
        await history.outbox_add([item(3)])
        assert [one.id for one in await history.outbox_due(T0, 10)] == ["id-3"]

    using(tmp_path / "h.db", story)


def test_webhook_results_replace(tmp_path: Path) -> None:
    async def story(history: History) -> None:
        first = WebhookResult("x", "g", "f", "firing", 1.0, "{}")
        later = replace(first, id="y", received_at=2.0), replace(first, status="resolved", received_at=3.0)
        await history.transact(lambda db: [outbox.put_result(db, one) for one in (first, *later)])
        assert [(one.id, one.status) for one in await history.webhook_results()] == [("x", "resolved"), ("y", "firing")]

    using(tmp_path / "h.db", story)


# ---------------------------------------------------------------- bounds


def test_retention_thinning_and_transitions_for_ever(tmp_path: Path) -> None:
    async def story(history: History) -> None:
        board = Board()
        await rounds(history, board, *([said("a", at=T0 + 15 * i)] for i in range(40)))
        await rounds(history, board, [said("a", "l1", at=T0 + 600)])
        await rounds(history, board, [said("a", "l1", at=T0 + 2 * DAY)])
        assert (
            len(await history.signals(A, ["rho"], T0, T0 + DAY, 1.0) and await history.verdicts(A, T0, T0 + DAY, 1))
            == 11
        )
        await rounds(history, board, [said("a", "l1", at=T0 + 8 * DAY)])
        assert [p.at for p in await history.verdicts(A, T0, T0 + 9 * DAY, 1)] == [T0 + 2 * DAY, T0 + 8 * DAY]
        assert [one.after for one in await history.transitions(T0, T0 + DAY)] == ["none", "l1"]

    using(tmp_path / "h.db", story)


def test_the_oldest_evaluations_go_when_the_file_is_too_large(tmp_path: Path) -> None:
    engines, size = [f"engine-{i}:8000" for i in range(50)], 2**20

    async def story(history: History) -> None:
        board = Board()
        for i in range(400):
            batch = [said(name, at=T0 + 15 * i) for name in engines]
            await history.record(batch, board.put(batch))
            assert history.healthy
        points = await history.verdicts(Key(engines[0], "0"), T0, T0 + DAY, 15)
        assert points[-1].at == T0 + 15 * 399 and points[0].at > T0

    using(tmp_path / "h.db", story, size=size)
    assert (tmp_path / "h.db").stat().st_size <= size


# ---------------------------------------------------------------- kill -9

WRITER = """
import asyncio, sys
from pathlib import Path
from service.test_board import said
from service.test_history import item
from diagnoser.service.board import Board
from diagnoser.service.history import History

async def main():
    history, board = await History.open(Path(sys.argv[1]), 1e9, 2**30), Board()
    assert history.healthy, history.problem
    first = int(sys.argv[2])
    for i in range(first, first + 100_000):
        batch = [said("a", ("none", "l1")[i % 2], at=1.0 + i)]
        (change,) = await history.record(batch, board.put(batch))
        print("transition", change.id, flush=True)
        await history.outbox_add([item(i)])
        print("item", i, flush=True)
        await history.outbox_update(f"id-{i}", state="done", attempts=1, next_at=0.0, error="")
        print("done", i, flush=True)

asyncio.run(main())
"""


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path, said_so = tmp_path / "h.db", set[tuple[str, int]]()
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    for number in range(4):
        words = [sys.executable, "-c", WRITER, str(path), str(100_000 * number)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as child:
            assert child.stdout is not None
            for _ in range(40 + 37 * number):
                said_so.add(_word(child.stdout.readline()))
            child.send_signal(signal.SIGKILL)
            said_so |= {_word(line) for line in child.stdout if line.endswith("\n")}

    async def check(history: History) -> set[tuple[str, int]]:
        assert history.healthy, history.problem
        found = {("transition", one.id) for one in await history.transitions(0, 1e12, limit=1_000_000)}
        for state in ("pending", "done"):
            for one in await history.outbox_list(state, 1_000_000):
                found.add(("item", int(one.id.removeprefix("id-"))))
                found |= {("done", int(one.id.removeprefix("id-")))} if state == "done" else set()
        return found

    assert said_so <= using(path, check) and len(said_so) > 300


def _word(line: str) -> tuple[str, int]:
    name, number = line.split()
    return name, int(number)


# ---------------------------------------------------------------- bad disks


def test_a_full_file_keeps_messages_and_transitions_in_memory_until_there_is_room(tmp_path: Path) -> None:
    async def story(history: History) -> None:
        board, big = Board(), "x" * 20_000
        await rounds(history, board, [said("a", at=T0)])
        for number in range(60):
            await history.outbox_add([replace(item(number, payload=big), created_at=T0)])
        assert not history.healthy and "max_size" in history.problem
        (change,) = await rounds(history, board, [said("a", "l1", at=T0 + 5)])
        assert change.id == 2, "ids go on"
        assert change in await history.transitions(T0, T0 + 10)
        due = await history.outbox_due(T0, 100)
        assert {one.id for one in due} == {f"id-{number}" for number in range(60)}, "all are delivered all the same"
        for one in due:
            await history.outbox_update(one.id, state="done", attempts=1, next_at=0.0, error="")
        assert await history.outbox_due(T0, 10) == []
        with pytest.raises(HistoryError):
            await history.transact(lambda db: db.execute("INSERT INTO silences VALUES ('x', 1, ?)", (big * 60,)))
        for at in (T0 + 8 * DAY, T0 + 8 * DAY + 1):  # what was delivered long ago makes room
            await rounds(history, board, [said("a", "l1", at=at)])
        assert history.healthy, history.problem

    using(tmp_path / "h.db", story, size=2**20)
    stored = using(tmp_path / "h.db", lambda history: history.transitions(T0, T0 + 10))
    assert [(one.id, one.after) for one in stored] == [(1, "none"), (2, "l1")]


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from service.test_board import said
from service.test_history import T0, item
from diagnoser.service.board import Board
from diagnoser.service.history import History

async def main():
    history, board = await History.open(Path(sys.argv[1]), 1e9, 2**30), Board()
    batch = [said("a", at=T0)]
    await history.record(batch, board.put(batch))
    assert history.healthy
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    for i in range(100):
        await history.outbox_add([item(i, payload="x" * 10_000)])
    assert not history.healthy and "not being written" in history.problem
    assert len(await history.outbox_due(T0, 1000)) == 100
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    batch = [said("a", "l1", at=T0 + 1)]
    await history.record(batch, board.put(batch))
    assert history.healthy, history.problem
    await history.close()

asyncio.run(main())
"""


def test_a_disk_that_takes_nothing_more_and_then_does_again(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path / "h.db")], env=env, stderr=subprocess.PIPE)
    assert ran.returncode == 0, ran.stderr.decode()
    due = using(tmp_path / "h.db", lambda history: history.outbox_due(T0, 1000))
    assert len(due) == 100


def test_what_is_no_database_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    path.write_bytes(b"this is not a database, but somebody's text" * 100)

    async def story(history: History) -> None:
        assert not history.healthy and "put aside as h.db.damaged-" in history.problem
        await rounds(history, Board(), [said("a", at=T0)])
        assert not history.healthy, "told until a restart"
        assert len(await history.transitions(T0, T0)) == 1

    using(path, story)
    assert any(b"somebody's text" in found.read_bytes() for found in tmp_path.glob("h.db.damaged-*"))

    async def after(history: History) -> None:
        assert history.healthy and len(await history.transitions(T0, T0)) == 1

    using(path, after)


def test_damage_inside_is_found_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "h.db"

    async def fill(history: History) -> None:
        await history.outbox_add([item(number, payload="x" * 1000) for number in range(1000)])
        shutil.copy(tmp_path / "h.db-wal", tmp_path / "wal")

    using(path, fill)
    content = bytearray(path.read_bytes())
    content[8192 : 8192 + 40 * 4096] = os.urandom(40 * 4096)
    path.write_bytes(content)
    (tmp_path / "h.db-wal").write_bytes(b"")  # as after a crash: somebody did not close the file

    async def story(history: History) -> None:
        assert not history.healthy and "is damaged" in history.problem
        await history.outbox_add([item(1)])
        assert len(await history.outbox_due(T0, 10)) == 1

    using(path, story)


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    using(path, lambda history: history.outbox_add([item(1)]))
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    db.close()

    async def story(history: History) -> None:
        assert not history.healthy and "in memory only" in history.problem and "version" in history.problem
        await history.outbox_add([item(2)])
        assert [one.id for one in await history.outbox_due(T0, 10)] == ["id-2"]

    using(path, story)
    db = sqlite3.connect(path)
    assert db.execute("SELECT id FROM outbox").fetchall() == [("id-1",)]
    db.close()


@pytest.mark.parametrize("where", ["/proc/diagnoser/h.db", "/dev/null/h.db"])
def test_a_place_that_cannot_be_written_to(where: str) -> None:
    async def story(history: History) -> None:
        assert not history.healthy and "cannot be used" in history.problem
        await rounds(history, Board(), [said("a", at=T0)])
        assert len(await history.transitions(T0, T0)) == 1

    using(Path(where), story)


def test_two_services_do_not_share_a_file(tmp_path: Path) -> None:
    async def story(first: History) -> None:
        second = await History.open(tmp_path / "h.db", DAY, 2**30)
        assert first.healthy and "another `diagnose serve`" in second.problem
        await second.close()

    using(tmp_path / "h.db", story)
    assert using(tmp_path / "h.db", _healthy)


async def _healthy(history: History) -> bool:
    return history.healthy


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    using(tmp_path / "h.db", _healthy)
    assert (tmp_path / "h.db").stat().st_mode & 0o077 == 0
