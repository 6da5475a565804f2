"""Makes the helpers beside the tests importable, and runs the command in this process."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from ran import Ran

from diagnoser.cli import main


@pytest.fixture
def diagnose(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs the command: `diagnose("replay", path)`."""

    def run(*words: object) -> Ran:
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        for handler in logging.getLogger().handlers[:]:
            if getattr(handler, "stream", None) is sys.stderr:  # `serve` logs to what is this test's alone
                logging.getLogger().removeHandler(handler)
        return Ran(code, captured.out, captured.err)

    return run
