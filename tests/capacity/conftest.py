"""Models of tests/data/models and the command as a user calls it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diagnoser.capacity import Deployment, Model, Plan, load_model, plan
from diagnoser.capacity.command import add_arguments, run

MODELS = Path(__file__).parents[1] / "data" / "models"


@pytest.fixture(scope="session")
def model() -> Callable[[str], Model]:
    """model("llama-3-70b")."""
    return lambda name: load_model(MODELS / f"{name}.json")


@pytest.fixture(scope="session")
def planned(model: Callable[[str], Model]) -> Callable[..., Plan]:
    """planned("llama-3-70b", tp=8): the plan of a deployment."""
    return lambda name, **settings: plan(model(name), Deployment(**settings))


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """cli("llama-3-70b", "--tp 8"): what the command prints. A name of None gives no --config."""

    def call(name: str | None, flags: str = "") -> str:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        config = [] if name is None else ["--config", str(MODELS / f"{name}.json")]
        assert run(parser.parse_args([*config, *flags.split()])) == 0
        return capsys.readouterr().out

    return call


@pytest.fixture
def data(cli: Callable[..., str]) -> Callable[..., dict[str, Any]]:
    """As cli, parsed from JSON."""
    return lambda name, flags="": dict(json.loads(cli(name, f"{flags} --format json")))
