"""One load recorded on four pools: each recording alone must ask for the pool that the four together show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diagnoser.cli import main
from diagnoser.model import Diagnosis
from diagnoser.outputs.base import badness
from diagnoser.sources.recording import open_recording
from diagnoser.stretch import diagnosed
from tests.story import BOOK

DATA = Path(__file__).parents[1] / "data" / "recordings"
SMALLEST = 480 * 32
"""Tokens: 448 blocks still have short queues, 320 are marginal, 160 and 224 grow to the end."""


def stretch(name: str) -> Diagnosis:
    return diagnosed(open_recording(str(DATA / f"{name}.tar.xz")), BOOK, {}, 30.0, badness)[0]


def asked(name: str) -> float:
    pool = next(one.pool_tokens for one in stretch(name).what_if if one.id == "required_pool")
    assert pool is not None
    return pool


@pytest.mark.parametrize("blocks", [160, 224, 320, 448])
def test_each_pool_alone_predicts_the_smallest_without_a_lasting_queue(blocks: int) -> None:
    assert asked(f"vllm-0.32.0--h12-pool-{blocks}") == pytest.approx(SMALLEST, rel=0.25)


def test_the_same_load_asks_for_the_same_pool() -> None:
    pair = [asked(f"vllm-0.32.0--{name}") for name in ("c-l1-preempt", "l-l2-idle-l1-bound")]
    assert max(pair) / min(pair) < 1.25


def test_a_slot_bound_engine_needs_no_pool() -> None:
    told = {one.id: one for one in stretch("vllm-0.32.0--e-max-num-seqs").what_if}
    assert told["required_pool"].helps is False
    assert told["more_slots"].helps is True


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(DATA / "vllm-0.32.0--l-l2-idle-l1-bound.tar.xz")
    assert main(["what-if", path, "--format", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["diagnoses"]
    told = {change["id"]: change for change in one["what_if"]}
    assert told["twice_l2"]["helps"] is False
    assert "no change in admission" in told["twice_l2"]["reason"]
    assert told["required_pool"]["pool_low_tokens"] <= told["required_pool"]["pool_tokens"]
    assert one["load"]["rho"]["value"] > 1
    assert main(["what-if", path]) == 0
    text = capsys.readouterr().out
    assert "twice the L2: no change in admission" in text
    assert max(map(len, text.splitlines())) <= 80


def test_capacity_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    shape = ["--layers", "80", "--kv-heads", "8", "--head-dim", "128"]
    assert main(["capacity", *shape, "--pool-bytes", "60GiB", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kv_bytes_per_token"] == 327680
    assert main(["capacity"]) == 64
    assert "config.json" in capsys.readouterr().err
