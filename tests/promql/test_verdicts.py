"""The same bottleneck, mode and L2 state at the same instants, but for what differences.py lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from story import BOOK

from diagnoser.model import Diagnosis, Verdict, Window
from diagnoser.pipeline import History, diagnose

from .compare import Difference
from .conftest import EVERY, WINDOW, Asked
from .differences import VERDICTS


def _words(verdict: Verdict) -> str:
    return f"{verdict.bottleneck} ({verdict.mode})" if verdict.mode else verdict.bottleneck


def _windows(found: Asked, histories: Mapping[str, History]) -> Iterator[tuple[Window, bool]]:
    """Those in which the target was scraped at all, and whether it was before the window, too."""
    for history in histories.values():
        longer = history.windows(found.at, WINDOW + 2 * EVERY)
        for window, more in zip(history.windows(found.at, WINDOW), longer, strict=True):
            if window.snapshots or window.failures:
                yield window, len(more.snapshots) == len(window.snapshots)


def _differ(got: Diagnosis, want: Diagnosis, product: str, at: float, begun: bool) -> Iterator[Difference]:
    engine = want.engine
    where = engine.family, product, engine.target, at, engine.rank
    for name, one, other in (
        ("verdict", _words(got.verdict), _words(want.verdict)),
        ("l2", got.verdict.l2.value, want.verdict.l2.value),
    ):
        if one != other:
            yield Difference(name, "value", *where, one, other, begun)


@pytest.fixture(scope="module")
def differences(asked: Mapping[str, list[Asked]], histories: Mapping[str, History]) -> list[Difference]:
    out: list[Difference] = []
    for product, instants in asked.items():
        for found in instants:
            known = list(_windows(found, histories))
            for want, (window, begun) in zip(diagnose([w for w, _ in known], BOOK), known, strict=True):
                got = found.of(want.engine.target, want.engine.rank)
                assert got is not None, want.engine
                out += _differ(got[1], want, product, window.end, begun)
    return out


def test_no_verdict_differs_that_is_not_listed(differences: list[Difference]) -> None:
    assert [str(one) for one in differences if not any(listed.matches(one) for listed in VERDICTS)] == []


def test_every_listed_verdict_still_differs(differences: list[Difference]) -> None:
    assert [listed for listed in VERDICTS if not any(listed.matches(one) for one in differences)] == []


def test_the_verdicts_are_of_every_kind(asked: Mapping[str, list[Asked]]) -> None:
    """That equal does not mean equally empty."""
    seen = {(one.verdict.bottleneck, one.verdict.mode) for found in asked["prometheus"] for one in found.diagnoses}
    kinds = {bottleneck for bottleneck, _ in seen}
    assert {"l1", "slots", "prefill", "stalled", "external", "unreachable", "none"} <= kinds
    assert {("l1", mode) for mode in ("preempting", "admission", "reservation")} <= seen
