"""Scores verdicts against what the engine itself counted (truth files beside the recordings).

A window is judged by the seconds in which the head of the queue was refused: under a tenth expects "none", a tenth
to three
tenths is a boundary and not judged, above that every cause with a quarter of the refused time is right. If the last
three polls failed, "unreachable" is. The pool at the end must match within 3 % of its capacity.
"""

from __future__ import annotations

import json
import lzma
import tarfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diagnoser.model import Diagnosis, Fact, Quantity, Range
from diagnoser.replay import replay
from diagnoser.rulebook.rules import Rulebook
from diagnoser.sources.recording import RecordedTarget, Recording, open_recording
from score.releases import as_release

WINDOW, STEP = 30.0, 5.0


@dataclass
class Score:
    """Counts over windows: judged and right verdicts, right and missed and false l1, right and judged pool states."""

    judged: int = 0
    right: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    l1_found: int = 0
    l1_false: int = 0
    l1_missed: int = 0
    pool_right: Counter[str] = field(default_factory=Counter)
    pool_judged: Counter[str] = field(default_factory=Counter)

    @property
    def accuracy(self) -> float:
        return self.right / self.judged if self.judged else 1.0


def thinned(target: RecordedTarget, every: int) -> RecordedTarget:
    """The recorded target with every n-th poll only: what a slower scrape interval sees."""
    kept = sorted(target._polls)[::every]
    return RecordedTarget(target.name, target.meta, {stamp: target._polls[stamp] for stamp in kept})


def truth_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Truth rows by engine rank."""
    rows = defaultdict(list)
    with lzma.open(path.with_name(path.name.replace(".tar.xz", ".truth.jsonl.xz")), "rt") as lines:
        for line in lines:
            row = json.loads(line)
            rows[row["rank"]].append(row)
    return rows


def facts_of(path: Path) -> dict[str, Fact]:
    """What an operator would know; the recording's meta.json holds it for scoring, the product never reads it."""
    with tarfile.open(path) as archive:
        member = archive.extractfile("meta.json")
        assert member is not None
        known = json.load(member)["facts"]
    return {name: Fact(name, value, "an operator") for name, value in known.items()}


def expected(
    at: float, seconds: float, rows: Sequence[Mapping[str, Any]], polls: Sequence[tuple[float, bool]]
) -> set[str] | None:
    """The right verdicts of one window, None if it is not judged."""
    recent = [good for t, good in polls if t <= at + 0.5][-3:]
    if len(recent) == 3 and not any(recent):
        return {"unreachable"}
    inside = [row for row in rows if at - seconds < row["t"] <= at + 0.5]
    if any(not good for t, good in polls if at - seconds < t <= at + 0.5) or len(inside) < 0.8 * seconds:
        return None
    refused: Counter[str] = Counter()
    for row in inside:
        refused.update(row["blocked"])
    share = sum(refused.values()) / len(inside)
    if share < 0.10:
        return {"none"}
    return None if share < 0.30 else {c for c, s in refused.items() if s >= 0.25 * sum(refused.values())}


def _ends(value: Quantity) -> tuple[float, float] | None:
    if value is None:
        return None
    return (value.low, value.high) if isinstance(value, Range) else (float(value), float(value))


def judge_pool(score: Score, found: Diagnosis, rows: Sequence[Mapping[str, Any]]) -> None:
    """Compares the three states with the engine's own count around the window's end."""
    near = [row for row in rows if found.at - 3.0 < row["t"] <= found.at + 1.0 and "capacity" in row]
    for state in ("used", "evictable", "available") if near else ():
        ends = _ends(getattr(found.l1, state))
        if ends is None:
            continue
        slack = 0.03 * near[0]["capacity"]
        low, high = min(row[state] for row in near) - slack, max(row[state] for row in near) + slack
        wide = state == "used" and ends[1] - ends[0] > 0.10 * near[0]["capacity"]
        score.pool_judged[state] += 1
        score.pool_right[state] += ends[0] <= high and ends[1] >= low and not wide


def score_recording(
    path: Path,
    book: Rulebook,
    *,
    with_facts: bool = False,
    thin: int = 1,
    release: str | None = None,
    window: float = WINDOW,
    step: float = STEP,
) -> Score:
    """Replays one recording and judges every window of every rank."""
    recording, truth, score = open_recording(path), truth_of(path), Score()
    (target,) = recording.targets
    kept = thinned(target if release is None else as_release(target, release), thin)
    polls = [(page.at, page.text is not None) for page in kept.pages()]
    facts = facts_of(path) if with_facts else {}
    for found in replay(Recording(recording.path, (kept,), ()), book, facts, window, step):
        for diagnosis in found:
            rows = truth.get(diagnosis.engine.rank, [])
            want = expected(diagnosis.at, window, rows, polls)
            if want is None or diagnosis.at < polls[0][0] + window - 0.5:
                continue
            got = diagnosis.verdict.bottleneck
            score.judged += 1
            score.right += got in want
            how = f"{'|'.join(sorted(want))} -> {got} ({diagnosis.verdict.confidence})"
            score.wrong[how] += got not in want
            score.l1_found += got == "l1" and "l1" in want
            score.l1_false += got == "l1" and "l1" not in want
            score.l1_missed += got != "l1" and want == {"l1"}
            if "unreachable" not in want:
                judge_pool(score, diagnosis, rows)
    return score
