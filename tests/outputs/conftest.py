"""`pytest tests/outputs --update-golden` writes the golden files anew; review them in the diff."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew instead of comparing")


@pytest.fixture
def updating(request: pytest.FixtureRequest) -> bool:
    """Are golden files to be written?"""
    return bool(request.config.getoption("--update-golden", default=False))
