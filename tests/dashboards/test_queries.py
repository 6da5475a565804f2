"""Every query of every panel against recordings of real engines, through a real Prometheus with our rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .asking import Asked, Values, escaped, filled, must_answer, options, queries, windows
from .lab import NAMED, Engine, Lab, until

Boards = Mapping[str, dict[str, Any]]
ONE_ENGINE = ("diagnoser-engine", "diagnoser-l1-l2")
CHOSEN = ("job", "model", "instance", "rank")
EVERYTHING = dict.fromkeys(CHOSEN, ".*")
ONLY_SOMETIMES = {"annotation Bottlenecks", "Checklist: unknown"}
"""Empty for an engine that is well; not for all of them."""


def views(lab: Lab, board: Mapping[str, Any]) -> Iterator[tuple[Engine, Values]]:
    """Every engine rank, chosen by the variables, as somebody would click them."""
    for engine in lab.engines:
        values: dict[str, str] = {"job": ".*", "model": ".*", "instance": escaped(engine.address)}
        for rank in options(lab, board, "rank", values):
            yield engine, {**values, "rank": escaped(rank)}


class Answers:
    """What was asked, of which engine rank it has had data, and what is still missing."""

    def __init__(self, lab: Lab, board: Mapping[str, Any], asked: list[Asked]) -> None:
        self._lab, self._board, self._asked = lab, board, asked
        self._had: set[tuple[Asked, str, str]] = set()

    def missing(self) -> list[str]:
        """Without data though the engine exports it, or without data of any engine of its family."""
        silent = [text for engine, values in views(self._lab, self._board) for text in self._of(engine, values)]
        told = {one for one, _, _ in self._had}
        return silent + [
            f"{one.panel} {one.ref}: no engine has it: {one.expr}" for one in self._asked if one not in told
        ]

    def _of(self, engine: Engine, values: Values) -> Iterator[str]:
        silent = []
        for one in self._asked:
            key = (one, engine.name, values["rank"])
            if key in self._had or not one.concerns(engine):
                continue
            if self._lab.asked(filled(one.expr, values), one.instant):
                self._had.add(key)
            elif one.panel not in ONLY_SOMETIMES:
                silent.append(one)
        recorded = self._lab.recorded(engine) if silent else []
        for one in silent:
            if must_answer(one, engine, values["rank"], recorded):
                yield f"{one.panel} {one.ref}: nothing of {engine.name}/{values['rank']} for {one.expr}"


def test_every_query_of_one_engine_has_what_the_engine_exports(lab: Lab, boards: Boards) -> None:
    for uid in ONE_ENGINE:
        until(Answers(lab, boards[uid], list(queries(boards[uid]))).missing)


def test_every_query_of_the_fleet_has_data(lab: Lab, boards: Boards) -> None:
    board = boards["diagnoser-fleet"]
    several = {
        **EVERYTHING,
        "job": "(sglang|vllm)",
        "instance": f"({'|'.join(escaped(e.address) for e in lab.engines)})",
    }

    def silent() -> list[str]:
        return [
            f"{one.panel} {one.ref}: {one.expr}"
            for values in (EVERYTHING, several)
            for one in queries(board)
            if not lab.asked(filled(one.expr, values), one.instant)
        ]

    until(silent)


def test_a_query_that_parses_and_matches_nothing_is_found(lab: Lab, boards: Boards) -> None:
    """Else the tests above would show nothing."""
    board = boards["diagnoser-engine"]
    used = next(one for one in queries(board) if "sglang:kv_used_tokens" in one.expr and "unless" not in one.expr)
    wrong = [
        replace(used, expr=used.expr.replace("kv_used_tokens", "kv_used_token")),
        replace(used, expr=used.expr.replace("dp_rank=", "rank=").replace("$rank|", "$rank")),
        replace(used, expr=used.expr.replace("instance=~", "model_name=~")),
    ]
    until(Answers(lab, board, [used]).missing)
    for one in wrong:
        assert any("no engine has it" in text for text in Answers(lab, board, [one]).missing()), one.expr


def test_variables_lead_from_job_to_rank(lab: Lab, boards: Boards) -> None:
    for uid in ("diagnoser-fleet", *ONE_ENGINE):
        board = boards[uid]
        until(lambda board=board: _missing(lab, board))
        assert windows(lab, board) == [NAMED]
        assert options(lab, board, "job", {}) == ["sglang", "vllm"]
        ranks = {engine.name: options(lab, board, "rank", _of(lab, board, engine)) for engine in lab.engines}
        assert ranks["vllm-0.32.0--m-dp2"] == ranks["sglang-0.5.23--l-dp2"] == ["0", "1"]
        assert ranks["vllm-0.32.0--c-l1-preempt"] == ["0"]


def _of(lab: Lab, board: Mapping[str, Any], engine: Engine) -> Values:
    values: dict[str, str] = {}
    for name, wanted in (("job", engine.family), ("model", ""), ("instance", engine.address)):
        found = options(lab, board, name, values)
        assert wanted in found or not wanted, (name, found)
        values[name] = escaped(wanted) if wanted else f"({'|'.join(map(escaped, found))})"
    return values


def _missing(lab: Lab, board: Mapping[str, Any]) -> list[str]:
    seen = options(lab, board, "instance", EVERYTHING)
    return [engine.name for engine in lab.engines if engine.address not in seen]


def test_the_worst_come_first(lab: Lab, boards: Boards) -> None:
    """The first column of the table orders by urgency, then by how much is blocked."""
    (worst,) = (
        one for one in queries(boards["diagnoser-fleet"]) if one.panel == "Engines, worst first" and one.ref == "A"
    )

    def wrong() -> list[str]:
        found = lab.asked(filled(worst.expr, EVERYTHING), True)
        told = [(one["metric"], float(one["value"][1])) for one in found]
        codes = {"critical": 4, "warning": 2, "info": 2}
        fixed = {"none": 0, "unknown": 1, "unreachable": 3}
        bad = [one for one in told if int(one[1]) != fixed.get(one[0]["bottleneck"], codes[one[0]["severity"]])]
        bound = any(labels["bottleneck"] == "l1" and value > 4 for labels, value in told)
        return (
            [json.dumps(bad)] * bool(bad) + ["nobody is bound"] * (not bound) + ["some are missing"] * (len(told) < 12)
        )

    until(wrong)
