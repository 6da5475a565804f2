"""The computed pool against the one that a running engine reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from diagnoser.cli import main
from diagnoser.sources.mock import MockEngine
from diagnoser.sources.recording import open_recording

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "vllm-0.32.0--c-l1-preempt.tar.xz"
SHAPE = ["--layers", "2", "--kv-heads", "2", "--head-dim", "64", "--block-size", "32"]
"""1 KiB a token, as the recorded engine has."""


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """The address of an engine with a pool of 8,192 tokens."""
    with MockEngine(open_recording(RECORDING).targets[0], speed=0.01) as mock:
        yield mock.url


def test_an_engine_that_agrees(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", *SHAPE, "--pool-bytes", "8MiB", "--live", engine, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["comparison"]
    assert (told["observed_tokens"], told["computed_tokens"]) == (8192, 8192)


def test_a_difference_is_explained_or_reported(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", *SHAPE, "--pool-bytes", "5MiB", "--live", engine]) == 0
    assert "8,192" in capsys.readouterr().out


def test_an_engine_that_is_down_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capacity", *SHAPE, "--pool-bytes", "8MiB", "--live", "127.0.0.1:9"]) == 3
    assert "127.0.0.1:9 refuses the connection" in capsys.readouterr().err
