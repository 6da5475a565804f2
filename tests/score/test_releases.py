"""What an old release does not show makes a verdict less sure, not wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from story import BOOK

from score.scoring import score_recording
from score.test_score import RECORDINGS

FEWER = {
    # No passes are counted before 0.5.7: full slots, and prefill, look like a pool that reserves output.
    "sglang-0.4.6": {
        "e-max-running": "slots -> l1 (low)",
        "f-prefill-compute": "prefill -> l1 (medium)",
    },
    "sglang-0.5.14-tp2": {},
    # One number for all who wait: parked requests are found by elimination.
    "vllm-0.8.5": {},
    "vllm-0.19.0": {},
}
"""Release -> scenario -> how it is misread."""


def scenario(path: Path) -> str:
    return path.name.removesuffix(".tar.xz").split("--")[1]


@pytest.mark.parametrize("release", FEWER)
def test_an_old_release_is_read_as_far_as_it_can_be(release: str) -> None:
    own = [path for path in RECORDINGS if path.name.split("-")[0] == release.split("-")[0]]
    found = {scenario(path): score_recording(path, BOOK, release=release, step=10.0) for path in own}
    assert sum(one.judged for one in found.values()) > 25
    assert {name: list(+one.wrong) for name, one in found.items() if +one.wrong} == {
        name: [how] for name, how in FEWER[release].items()
    }
