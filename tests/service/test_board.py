"""The board: who is on it, what changed, since when, and who is woken."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from diagnoser.model import Answer, CheckResult, Diagnosis, EngineId, PoolState, Severity, Verdict
from diagnoser.service.board import Board, Key


def said(
    target: str, bottleneck: str = "none", mode: str | None = None, severity: Severity = "info", at: float = 1.0
) -> Diagnosis:
    verdict = Verdict(bottleneck, severity, "high", f"{bottleneck} of {target}", mode)
    return Diagnosis(EngineId("vllm", target, model="m"), at, 30.0, 30, verdict, PoolState(), None, {})


def test_keys_have_names_that_come_back() -> None:
    for key in (Key("10.0.3.7:8000", "0"), Key("gw/model-a/metrics", "1"), Key("[::1]:8000", "0")):
        assert Key.parse(key.id) == key
    assert Key.parse("10.0.3.7:8000") == Key("10.0.3.7:8000", "0")


def test_transitions_are_changes_of_verdict_mode_or_severity() -> None:
    board = Board()
    (first,) = board.put([said("a", at=1.0)])
    assert (first.id, first.before, first.after, first.severity_before) == (0, None, "none", None)
    assert (first.model, first.family, first.headline) == ("m", "vllm", "none of a")
    assert board.put([said("a", at=2.0)]) == ()
    (second,) = board.put([said("a", "l1", "reservation", "warning", at=3.0)])
    assert (second.before, second.after, second.severity_before, second.severity) == (
        "none",
        "l1/reservation",
        "info",
        "warning",
    )
    (third,) = board.put([said("a", "l1", "reservation", "critical", at=4.0)])
    assert (third.before, third.after, third.severity_before) == ("l1/reservation", "l1/reservation", "warning")
    (fourth,) = board.put([said("a", "l1", "preempting", "critical", at=5.0)])
    assert (fourth.before, fourth.after, fourth.at) == ("l1/reservation", "l1/preempting", 5.0)
    board.put([said("a", "l1", "preempting", "critical", at=9.0)])
    entry = board.get(Key("a", "0"))
    assert entry is not None and (entry.since, entry.diagnosis.at) == (5.0, 9.0)


def test_a_restart_is_no_change() -> None:
    before, after = Board(), Board()
    last = before.put([said("a", "l1", "reservation", "warning", at=3.0), said("b", at=3.0)])
    after.remember(last)
    assert after.put([said("a", "l1", "reservation", "warning", at=60.0)]) == ()
    entry = after.get(Key("a", "0"))
    assert entry is not None and entry.since == 3.0
    (changed,) = after.put([said("b", "stalled", severity="critical", at=60.0)])
    assert changed.before == "none"


def test_the_worst_is_first_equals_by_name() -> None:
    board = Board()
    board.put([said("b"), said("a"), said("c", "l1", None, "warning"), said("d", "l1", None, "critical")])
    assert [entry.key.target for entry in board.entries()] == ["d", "c", "a", "b"]
    board.put([said("d"), said("e", "unreachable", None, "critical")])
    assert [entry.key.target for entry in board.entries()] == ["e", "c", "a", "b", "d"]


def test_the_cursor_moves_with_what_readers_see() -> None:
    board = Board()
    board.put([said("a"), said("b")])
    assert board.cursor == 1
    board.put([said("a", at=2.0), said("b", at=2.0)])
    assert board.cursor == 1, "only the time has passed"
    answered = replace(said("b", at=3.0), checks=(CheckResult("x", "?", Answer.YES, ""),))
    board.put([said("a", at=3.0), answered])
    assert board.cursor == 2
    assert {entry.key.target: entry.cursor for entry in board.entries()} == {"a": 1, "b": 2}


def test_dropping_wakes_too() -> None:
    board = Board()
    board.put([said("a"), said("b")])
    board.drop([Key("a", "0"), Key("nobody", "0")])
    assert [entry.key.target for entry in board.entries()] == ["b"] and board.cursor == 2
    board.drop([Key("nobody", "0")])
    assert board.cursor == 2


def test_waiting_for_a_change() -> None:
    async def scenario() -> None:
        board = Board()
        waiting = [asyncio.create_task(board.changed(0)) for _ in range(3)]
        await asyncio.sleep(0)
        board.put([said("a")])
        assert await asyncio.gather(*waiting) == [1, 1, 1]
        assert await board.changed(0) == 1, "what is old already is answered at once"
        later = asyncio.create_task(board.changed(1))
        board.put([said("a", at=2.0)])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(later), 0.01)
        board.put([said("a", "l1", None, "warning")])
        assert await later == 2

    asyncio.run(scenario())
