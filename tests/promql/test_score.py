"""PromQL is as right as the direct path by the engines' own count (bench/promql_score.py prints other intervals)."""

from __future__ import annotations

from pathlib import Path

from fleet.recordings_into import PRODUCTS
from prometheus.conftest import RECORDINGS

from .scored import DIRECT, Judged, score, truths

LEEWAY = 0.02
"""How much less right a verdict may be that a server computes from a page every 5 s."""


def test_as_right_as_from_the_pages(tmp_path: Path) -> None:
    how = Judged(5, 40.0, 20.0)
    known = truths(RECORDINGS.glob("*.tar.xz"), how.every)
    stored = [one.stored for one in known]
    with PRODUCTS["prometheus"](tmp_path / "p", stored) as one, PRODUCTS["victoria"](tmp_path / "v", stored) as other:
        found = score({"prometheus": one, "victoria": other}, known, how)
    assert found[DIRECT].judged >= 40
    for tally in found.values():
        assert tally.judged == found[DIRECT].judged
        assert tally.accuracy >= found[DIRECT].accuracy - LEEWAY, tally.wrong
