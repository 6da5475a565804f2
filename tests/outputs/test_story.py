"""docs/story.md shows what the command prints, not what it once printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from ran import Ran

ROOT = Path(__file__).parents[2]
STORY = (ROOT / "docs" / "story.md").read_text()
TOLD = re.findall(r"```sh\ndiagnose (.+?)\n```\n\n```text\n(.+?)\n```", STORY, re.DOTALL)


def test_the_story_shows_the_command() -> None:
    assert len(TOLD) == 2


@pytest.mark.parametrize(("command", "printed"), TOLD, ids=["after 20 s", "after 55 s"])
def test_it_prints_that(diagnose: Callable[..., Ran], command: str, printed: str) -> None:
    words = [str(ROOT / word) if word.startswith("tests/") else word for word in shlex.split(command)]
    assert diagnose(*words).out.rstrip() == printed
