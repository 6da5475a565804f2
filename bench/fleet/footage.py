"""What the engines of a fleet replay: real recordings as arrays, cut to the part that shows one state.

A recording of a minute becomes footage of any length by going round: its last page stands for the first of the next
lap, gauges repeat, and everything that counts up goes on from where it was. So rates, sizes and reactions stay those
of the real engine, at the real speed.
"""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from diagnoser.sources.exposition import PageParser
from diagnoser.sources.recording import RecordedPage, open_recording

DATA = Path(__file__).parents[2] / "tests" / "data"
_TYPE = re.compile(r"^# TYPE (\S+) (\S+)", re.MULTILINE)
_FILE = re.compile(r"(vllm|sglang)-(\d[\d.]*\d)-*(.*)\.tar\.xz")
_REFUSED, _GAP = 0.5, 3.0
"""A second counts as bound if its head was refused for half of it; pauses of three seconds do not end a stretch."""


@dataclass(frozen=True, eq=False)
class Footage:
    """Pages of one engine in one state. `values` is pages x series, NaN where a page lacks the series."""

    name: str
    family: str
    version: str
    cause: str
    """What kept requests waiting, as the engine counted it itself; "none"."""
    refused: Mapping[str, float]
    """By rank: the part of the time in which the head of its queue was refused."""
    series: tuple[tuple[str, Mapping[str, str]], ...]
    counting: np.ndarray
    dated: np.ndarray
    began: float
    times: np.ndarray
    values: np.ndarray

    @property
    def lap(self) -> float:
        """Seconds until it repeats."""
        return float(self.times[-1])


def recorded(path: Path, wanted: Set[str] | None) -> Footage:
    """A recording whole, or the stretch that its truth file calls bound. `wanted` None keeps every series."""
    match = _FILE.fullmatch(path.name)
    assert match, f"{path.name} is not named after an engine and a version"
    since, until, cause, refused = bound_part(path.with_name(path.name.replace(".tar.xz", ".truth.jsonl.xz")))
    (target,) = open_recording(path).targets
    pages = [page for page in target.pages() if page.text is not None and since <= page.at <= until]
    series, values, kinds = _table(pages, wanted)
    return Footage(
        name=path.name.removesuffix(".tar.xz"),
        family=match[1],
        version=match[2],
        cause=cause,
        refused=refused,
        series=tuple((name, dict(labels)) for name, labels in series),
        counting=np.array([_counts_up(name, kinds) for name, _ in series]),
        dated=np.array([name.endswith(("process_start_time_seconds", "_created")) for name, _ in series]),
        began=pages[0].at,
        times=np.array([page.at - pages[0].at for page in pages]),
        values=values,
    )


def _table(
    pages: list[RecordedPage], wanted: Set[str] | None
) -> tuple[list[tuple[str, tuple[tuple[str, str], ...]]], np.ndarray, dict[str, str]]:
    kinds = dict(_TYPE.findall("\n".join(page.text or "" for page in (pages[0], pages[-1]))))
    parser = PageParser(wanted if wanted is not None else {*kinds, *(k.removesuffix("_total") for k in kinds)})
    rows: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    cells: list[tuple[int, int, float]] = []
    for at, page in enumerate(pages):
        for name, labels, value in parser.parse(page.text or "").samples:
            cells.append((at, rows.setdefault((name, tuple(sorted(labels.items()))), len(rows)), value))
    values = np.full((len(pages), len(rows)), np.nan)
    for at, row, value in cells:
        values[at, row] = value
    return list(rows), values, kinds


def _counts_up(name: str, kinds: Mapping[str, str]) -> bool:
    """Whether its values add up from lap to lap. Spelled with a colon or not, its type is of the same name."""
    plain = {key.replace(":", "_"): kind for key, kind in kinds.items()}
    bare = name.replace(":", "_")
    stems = {bare, *(bare.removesuffix(end) for end in ("_total", "_bucket", "_sum", "_count"))}
    return any(plain.get(stem) in ("counter", "histogram", "summary") for stem in stems)


def bound_part(truth: Path) -> tuple[float, float, str, Mapping[str, float]]:
    """(first, last second, cause, refused by rank) of the longest bound stretch; everything if it never was bound."""
    if not truth.exists():
        return -np.inf, np.inf, "none", {}
    with lzma.open(truth, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    times = sorted({row["t"] for row in rows if sum(row["blocked"].values()) >= _REFUSED})
    if not times:
        return -np.inf, np.inf, "none", {rank: 0.0 for rank in _ranks(rows)}
    first, last = max(_stretches(times), key=lambda ends: ends[1] - ends[0])
    inside = [row for row in rows if first <= row["t"] <= last]
    causes = sum((Counter(row["blocked"]) for row in inside), Counter[str]())
    ranks = {rank: [row for row in inside if row["rank"] == rank] for rank in _ranks(inside)}
    refused = {rank: sum(sum(r["blocked"].values()) for r in mine) / len(mine) for rank, mine in ranks.items()}
    return first, last, max(causes, key=lambda cause: causes[cause]), refused


def _ranks(rows: list[dict[str, Any]]) -> list[str]:
    return sorted({row["rank"] for row in rows})


def _stretches(times: list[float]) -> Iterator[tuple[float, float]]:
    first = times[0]
    for one, other in pairwise([*times, np.inf]):
        if other - one > _GAP:
            yield first, one
            first = other
