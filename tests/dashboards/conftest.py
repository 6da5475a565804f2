"""The committed dashboards, and a real Prometheus that evaluates our rules over engines and the service."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from .clips import RECORDINGS
from .lab import Lab, running
from .past import Past, past
from .seen import Grafana, installed

ROOT = Path(__file__).parents[2]
PAST = (
    *RECORDINGS, "recordings/vllm-0.32.0--o-busy-not-bound", "recordings/vllm-0.32.0--e-max-num-seqs",
    "recordings/sglang-0.5.23--f-prefill-compute",
)  # fmt: skip
sys.path.append(str(ROOT / "dashboards"))


@pytest.fixture(scope="session")
def boards() -> Mapping[str, dict[str, Any]]:
    """By uid."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "dashboards").glob("*.json"))}
    assert found
    return found


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Running."""
    with running(tmp_path_factory.mktemp("dashboards")) as one:
        yield one


@pytest.fixture(scope="session")
def grafana(request: pytest.FixtureRequest) -> Grafana:
    """Its libraries, installed into pytest's cache."""
    cache = request.config.cache
    assert cache is not None
    return Grafana(installed(cache.mkdir("grafana")))


@pytest.fixture(scope="session")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """Recordings with what the rules record of them."""
    with past(tmp_path_factory.mktemp("past"), PAST) as one:
        yield one


@pytest.fixture
def updating(request: pytest.FixtureRequest) -> bool:
    """Are golden files to be written?"""
    return bool(request.config.getoption("--update-golden", default=False))
