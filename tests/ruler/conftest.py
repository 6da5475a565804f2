"""A real Prometheus that holds a fleet, one that evaluates our rules live, and what stands in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet.recordings_into import COMMON_END, Loaded, recordings_into
from prometheus.conftest import serve

__all__ = ["serve"]
EVERY = 5


@pytest.fixture(scope="session")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    """All recordings, a page every 5 s, each ending at COMMON_END."""
    with recordings_into("prometheus", tmp_path_factory.mktemp("held"), EVERY, COMMON_END) as loaded:
        yield loaded


def rules_file(folder: Path, name: str, text: str) -> Path:
    """A rule file in a folder."""
    path = folder / name
    path.write_text(text)
    return path
