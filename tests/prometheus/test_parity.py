"""The same samples give the same diagnosis, whether they come from the engine's page or back from a server.

Compared is everything that the output contract prints. The one difference is the sentence of a failed scrape: a server
stores that it failed (up = 0), not why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from story import BOOK

from diagnoser.model import Diagnosis
from diagnoser.outputs.contract import as_data
from diagnoser.pipeline import diagnose
from diagnoser.replay import instant
from diagnoser.sources.recording import RecordedTarget, Recording

from .conftest import LOADED, PREEMPTING, SGLANG_RANKS, ask, bare
from .servers import Stored, prometheus, victoria

WHERE = (0.0, 0.35, 0.7, 1.0)
"""Ends of the windows, as parts of the time from the first full window to the last page."""


def instants(target: RecordedTarget, window: float) -> list[float]:
    first, last = target.times[0] + window, target.times[-1]
    return [round(first + part * max(0.0, last - first), 3) for part in WHERE]


def directly(target: RecordedTarget, at: float, window: float) -> tuple[Diagnosis, ...]:
    return instant(Recording(Path("x"), (target,), ()), BOOK, {}, window, at)


def comparable(diagnosis: Diagnosis) -> dict[str, Any]:
    """All that is printed, without the words of failed polls."""
    data = as_data(diagnosis)
    if data["verdict"]["bottleneck"] == "unreachable":
        data["verdict"]["because"] = data["verdict"]["because"][1:]
        for check in data["checks"]:
            check["reason"] = check["reason"].partition("failed.")[0]
    return data


@pytest.mark.parametrize("product", ["prometheus", "victoria"])
@pytest.mark.parametrize("name", LOADED)
def test_the_same_diagnosis(servers: Mapping[str, str], name: str, product: str) -> None:
    target = bare(name)
    for at in instants(target, 30.0):
        found = ask(servers[product], at, f'instance="{name}"').served
        got = [comparable(one) for one in diagnose(found.windows, BOOK)]
        assert got == [comparable(one) for one in directly(target, at, 30.0)]


def test_the_verdicts_are_of_every_kind(servers: Mapping[str, str]) -> None:
    """That equal does not mean equally empty."""
    seen = set()
    for name in LOADED:
        for at in instants(bare(name), 30.0):
            found = ask(servers["prometheus"], at, f'instance="{name}"').served.windows
            seen |= {(d.verdict.bottleneck, d.verdict.mode) for d in diagnose(found, BOOK)}
    assert {("l1", "preempting"), ("l1", "reservation"), ("none", None), ("unreachable", None)} <= seen


def thinned(target: RecordedTarget, every: int) -> RecordedTarget:
    kept = sorted(target._polls)[::every]
    return RecordedTarget(target.name, {}, {stamp: target._polls[stamp] for stamp in kept})


@pytest.mark.parametrize("serve_from", [prometheus, victoria])
@pytest.mark.parametrize("every", [5, 15])
def test_other_intervals_underscores_and_target_labels_in_the_way(tmp_path: Path, serve_from: Any, every: int) -> None:
    """Names as a Prometheus 2 stores them (F1), a target label `engine`, no `up`, and slower scrapes."""
    vllm, sglang = thinned(bare(PREEMPTING), every), thinned(bare(SGLANG_RANKS), every)
    labels = {"job": "llm", "instance": vllm.name, "namespace": "prod", "pod": "vllm-7"}
    kept = [
        Stored(vllm, labels, underscores=True),
        Stored(sglang, {**labels, "instance": sglang.name}, up=False, extra={"cluster": "eu"}),
    ]
    with serve_from(tmp_path, kept) as url:
        for target in (vllm, sglang):
            window = 30.0 if every == 5 else math.ceil(target.times[-1] - target.times[0])
            at = target.times[-1]
            found = ask(url, at, f'instance="{target.name}"', window).served
            assert found.blind == (target is sglang)
            got = [comparable(one) for one in diagnose(found.windows, BOOK)]
            assert got == [comparable(one) for one in directly(target, at, window)]
