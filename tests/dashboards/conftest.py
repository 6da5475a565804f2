"""The committed dashboards, and a real Prometheus that evaluates our rules over engines and the service."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from .lab import Lab, running

ROOT = Path(__file__).parents[2]
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
