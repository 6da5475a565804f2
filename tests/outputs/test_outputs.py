"""Outputs one by one: the JSON Schema, adding one, the screen, names that would steer a terminal."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from diagnoser.cli import main
from diagnoser.data import data_dir
from diagnoser.model import Diagnosis, EngineId
from diagnoser.outputs import outputs
from diagnoser.outputs.base import Look, Report, exit_code, urgency, worst_first
from diagnoser.outputs.contract import SCHEMA
from diagnoser.replay import instant, span
from diagnoser.rulebook.load import load
from diagnoser.sources.recording import open_recording

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
NAMES = (
    "vllm-0.32.0--c-l1-preempt", "vllm-0.32.0--m-dp2", "vllm-0.32.0--i-killed", "vllm-0.32.0--o-busy-not-bound",
    "sglang-0.5.23--d-reservation", "sglang-0.5.23--j1-hicache-l1-bound-l2-idle", "vllm-0.32.0--l-l2-idle-l1-bound",
)  # fmt: skip


@cache
def last(name: str) -> tuple[Diagnosis, ...]:
    """The last window of a recording."""
    recording = open_recording(RECORDINGS / f"{name}.tar.xz")
    return instant(recording, load([data_dir("rules")]), {}, 30.0, span(recording)[1])


# ---------------------------------------------------------------- json


def strict(schema: Any) -> Any:
    """The schema with every object closed, so that a field nobody described is seen."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if "properties" in closed and "additionalProperties" not in closed:
        closed["additionalProperties"] = False
    return closed


def validator(part: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(strict({**schema, "$ref": f"#/$defs/{part}"}))


@pytest.mark.parametrize("name", NAMES)
def test_json_is_what_the_schema_says(name: str) -> None:
    report = Report(last(name), ("a note",))
    document = json.loads(outputs()["json"].render(report, Look()))
    validator("report").validate(document)
    lines = outputs()["jsonl"].render(report, Look()).splitlines()
    assert [json.loads(line) for line in lines] == document["diagnoses"]
    for line in lines:
        validator("diagnosis").validate(json.loads(line))


def test_the_schema_refuses_what_is_wrong() -> None:
    (good,) = json.loads(outputs()["json"].render(Report(last(NAMES[0])), Look()))["diagnoses"]
    for key, value in (("bottleneck", "gpu"), ("trend", "up"), ("because", ["a"] * 4), ("shares", {"l1": 1.5})):
        with pytest.raises(jsonschema.ValidationError):
            validator("diagnosis").validate({**good, "verdict": {**good["verdict"], key: value}})
    with pytest.raises(jsonschema.ValidationError):
        validator("diagnosis").validate({key: value for key, value in good.items() if key != "checks"})


def test_json_of_a_replay_holds_every_instant(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["replay", str(RECORDINGS / "vllm-0.32.0--i-killed.tar.xz"), "--step", "10s", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert len(document["diagnoses"]) >= 3
    assert document["exit_code"] == code == 3


# ---------------------------------------------------------------- the worst


def test_order_and_exit_codes() -> None:
    fine, bound, dead = last("vllm-0.32.0--o-busy-not-bound")[0], last(NAMES[0])[0], last("vllm-0.32.0--i-killed")[0]
    mild = replace(bound, verdict=replace(bound.verdict, severity="warning"))
    blind = replace(bound, verdict=replace(bound.verdict, bottleneck="unknown", severity="warning"))
    assert worst_first([fine, blind, mild, dead, bound]) == [bound, dead, mild, blind, fine]
    codes = [exit_code([urgency(one)]) for one in (fine, blind, mild, dead, bound)]
    assert codes == [0, 3, 1, 3, 2]
    assert exit_code(map(urgency, (dead, bound))) == 2, "a dead target does not hide a critical one"
    assert exit_code(map(urgency, (fine, dead))) == 3
    assert exit_code([]) == 3


# ---------------------------------------------------------------- text


def text(name: str, **look: Any) -> str:
    return outputs()["text"].render(Report(last(name)), Look(**look))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [60, 80, 120, 140])
def test_text_keeps_to_the_width(name: str, width: int) -> None:
    for terse in (0, 1, 2):
        assert max(map(len, text(name, width=width, terse=terse).splitlines())) <= width


@pytest.mark.parametrize("name", NAMES)
def test_text_fits_a_small_screen(name: str) -> None:
    if len(last(name)) == 1:
        assert len(text(name, height=23).splitlines()) <= 23
    assert len(text(name).splitlines()) <= 55


def test_colour_and_ascii() -> None:
    assert "\x1b[" in text(NAMES[0], colour=True)
    assert text(NAMES[0], unicode=False).isascii()
    assert "█" in text(NAMES[0])


def test_ascii_where_the_terminal_knows_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr("sys.stdout", stream)
    main(["replay", str(RECORDINGS / f"{NAMES[0]}.tar.xz"), "--last"])
    stream.seek(0)
    assert stream.read().isascii()


def test_names_cannot_steer_the_terminal() -> None:
    (found,) = last(NAMES[0])
    evil = replace(found, engine=EngineId("vllm", "host\x1b[2J:8000", "0", "1\n2", "a\u202e|`<b>*c*"))
    for name in ("text", "markdown"):
        out = outputs()[name].render(Report((evil,)), Look(verbose=True))
        assert "\x1b" not in out and "host?[2J:8000" in out.replace("\\", "")
    assert "\\<b\\>\\*c\\*" in outputs()["markdown"].render(Report((evil,)), Look())


def test_several_engines_have_a_table_first() -> None:
    bound, fine = last(NAMES[0])[0], last("vllm-0.32.0--o-busy-not-bound")[0]
    lines = outputs()["text"].render(Report((fine, bound)), Look()).splitlines()
    assert lines[0].split()[:3] == ["engine", "verdict", "closed"]
    assert "L1-BOUND" in lines[1] and "NO BOTTLENECK" in lines[2]
    assert "1 more in the table: -v shows all in full." in "\n".join(lines)


def test_the_hot_rank_is_named() -> None:
    one, two = last("vllm-0.32.0--m-dp2")
    check = next(check for check in one.checks if check.id == "hot_rank")
    from diagnoser.model import Finding

    hot = replace(one, findings=(Finding("imbalance", "warning", "pool 40 % fuller than its peers", check.evidence),))
    out = outputs()["text"].render(Report((hot, two)), Look())
    said = " ".join(out.partition("Hot  ")[2].partition("\n\n")[0].split())
    assert said.startswith("tiny, 2 ranks: ") and " of the pool held at " in said  # coldest and hottest
    assert f"Hot: {one.engine.target} rank 0." in said


def test_every_output_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = last(NAMES[0])
    for name in outputs():
        out = " ".join(outputs()[name].render(Report((found,)), Look(verbose=True)).replace("\\", "").split())
        assert found.verdict.headline in out
        assert found.verdict.because[0] in out
        assert found.remedies[0].flag in out
