"""docs/capacity.md shows what the command prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

DOC = Path(__file__).parents[2] / "docs" / "capacity.md"


def test_the_example_is_current(cli: Callable[..., str]) -> None:
    flags = "--tp 8 --gpu-memory 80GiB --prompt 6000 --output 1000 --observed-tokens 1392144"
    shown = DOC.read_text(encoding="utf-8").split("```")[3].strip().splitlines()
    assert shown[1:] == cli("llama-3.1-70b", flags).splitlines()[1:]
