"""Predicted against true: time to exhaustion, the queue a little later, the wait of a request that arrives now.

usage: python bench/forecast.py [FOLDER]      default: tests/data/recordings. Every recording needs its truth file.

The truth (what the scheduler itself counted, a line a second) is read here and nowhere in the product. The wait of an
arrival comes from it too: first come, first served, so it is over when as many have left the queue as waited.
"""

from __future__ import annotations

import json
import lzma
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnoser.commands.setup import rulebook
from diagnoser.model import Diagnosis
from diagnoser.replay import replay
from diagnoser.sources.recording import open_recording

DEFAULT = Path(__file__).parents[1] / "tests" / "data" / "recordings"
FULL = 0.95
"""The pool counts as exhausted from here: with less free than a twentieth no typical prompt fits."""
AHEAD, LONGEST, RAMP, SOON = 15.0, 60.0, 10.0, 20.0
"""Seconds: how far ahead the queue is compared; what a longer time to exhaustion counts as; window for exhaustion, for
the pools here fill within half a minute.
"""


@dataclass(frozen=True)
class Truth:
    """One rank: unix seconds, tokens held over capacity, requests waiting, requests running."""

    at: tuple[float, ...]
    used: tuple[float, ...]
    waiting: tuple[float, ...]
    refused: tuple[bool, ...]
    """The pool refused the head for half of the second or more."""

    def full(self, i: int) -> bool:
        """Nothing is left, or not enough for the head."""
        return self.used[i] >= FULL or self.refused[i]

    def after(self, at: float, seconds: float) -> list[int]:
        """Rows in (at, at + seconds]."""
        return [i for i, t in enumerate(self.at) if at < t <= at + seconds]


def truth(path: Path) -> dict[str, Truth]:
    """The truth beside a recording, by rank."""
    name = path.name.removesuffix(".tar.xz") + ".truth.jsonl.xz"
    with lzma.open(path.with_name(name), "rt") as stream:
        rows = [row for row in map(json.loads, stream) if row.get("capacity")]
    ranks = sorted({row["rank"] for row in rows})
    return {rank: _rank([row for row in rows if row["rank"] == rank]) for rank in ranks}


def _rank(rows: Sequence[dict[str, Any]]) -> Truth:
    return Truth(
        tuple(r["t"] for r in rows),
        tuple(r["used"] / r["capacity"] for r in rows),
        tuple(r["waiting"] for r in rows),
        tuple(r["blocked"].get("l1", 0.0) >= 0.5 for r in rows),
    )


def value(one: Diagnosis, name: str) -> float | None:
    """A signal."""
    found = one.signals.get(name)
    return None if found is None else found.value


def exhaustion(one: Diagnosis, true: Truth) -> tuple[float, float] | None:
    """Predicted and true seconds until the pool is full, if it was not yet; the truth is capped at LONGEST."""
    said = value(one, "time_to_exhaustion_seconds")
    now = [i for i, t in enumerate(true.at) if one.at - 3 < t <= one.at + 1]
    if said is None or not now or any(map(true.full, now)):
        return None
    full = next((true.at[i] - one.at for i in true.after(one.at, LONGEST) if true.full(i)), None)
    if full is None and one.at + min(said, LONGEST) > true.at[-1]:
        return None
    return min(said, LONGEST), LONGEST if full is None else full


def ahead(one: Diagnosis, true: Truth) -> tuple[float, float] | None:
    """Predicted and true requests waiting AHEAD seconds later, where somebody waits now or then."""
    said, rows = value(one, "waiting_ahead_requests"), true.after(one.at + AHEAD - 1, 1.5)
    if said is None or not rows or not (true.waiting[rows[0]] or value(one, "waiting_last_requests")):
        return None
    return said, true.waiting[rows[0]]


def wait(one: Diagnosis, true: Truth, admitted: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Predicted wait of a request that arrives now, and how long it took until as many were admitted as waited."""
    said, queue = value(one, "predicted_wait_seconds"), value(one, "waiting_last_requests")
    now = next((count for at, count in reversed(admitted) if at <= one.at + 0.02), None)
    if said is None or not queue or now is None:
        return None
    done = next((at for at, count in admitted if at > one.at and count >= now + queue), None)
    return None if done is None else (said, done - one.at)


def admissions(path: Path) -> dict[str, list[tuple[float, float]]]:
    """(time, requests admitted so far) of every page, by rank."""
    from diagnoser.pipeline import snapshots_of
    from diagnoser.replay import scrapes

    out: dict[str, list[tuple[float, float]]] = {}
    for scrape in (s for target in open_recording(path).targets for s in scrapes(target)):
        for snapshot in snapshots_of(scrape, {}):
            name = "queue_seconds" if snapshot.engine.family == "sglang" else "ttft_seconds"
            if name in snapshot.histograms:
                out.setdefault(snapshot.engine.rank, []).append((snapshot.at, snapshot.histograms[name].count))
    return out


def pairs(path: Path) -> Iterator[tuple[str, tuple[float, float]]]:
    """(kind, (predicted, true)) of every window of a recording."""
    true, admitted, book = truth(path), admissions(path), rulebook([])
    for ones in replay(open_recording(path), book, {}, RAMP, 2.0):
        for one in (one for one in ones if one.engine.rank in true):
            if (ramp := exhaustion(one, true[one.engine.rank])) is not None:
                yield "exhaustion", ramp
    for ones in replay(open_recording(path), book, {}, 30.0, 5.0):
        for one in (one for one in ones if one.engine.rank in true and one.verdict.bottleneck != "stalled"):
            rank = one.engine.rank
            for kind, found in (
                ("exhaustion", exhaustion(one, true[rank])),
                ("ahead", ahead(one, true[rank])),
                ("wait", wait(one, true[rank], admitted.get(rank, []))),
            ):
                if found is not None:
                    yield kind, found


def summary(kind: str, found: Sequence[tuple[float, float]]) -> str:
    """Median of predicted and true, and of the error: absolute, and relative to the truth where that is above one."""
    if not found:
        return f"{kind} -"
    off = [said - was for said, was in found]
    ratio = [abs(said - was) / was for said, was in found if was >= 1]
    relative = f" {statistics.median(ratio):4.0%}" if ratio else "    -"
    return (
        f"{kind} n {len(found):3} said {statistics.median(s for s, _ in found):6.1f}"
        f" was {statistics.median(w for _, w in found):6.1f} bias {statistics.median(off):+6.1f} off{relative}"
    )


def main() -> None:
    """Prints a row a recording and all of them together."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    every: dict[str, list[tuple[float, float]]] = {"exhaustion": [], "ahead": [], "wait": []}
    for path in sorted(folder.glob("*.tar.xz")):
        if not path.with_name(path.name.removesuffix(".tar.xz") + ".truth.jsonl.xz").exists():
            continue
        found = list(pairs(path))
        for kind, pair in found:
            every[kind].append(pair)
        if found:
            parts = [summary(kind, [pair for k, pair in found if k == kind]) for kind in every]
            print(f"{path.name.removesuffix('.tar.xz'):<44} {' | '.join(parts)}", flush=True)
    soon = [was for said, was in every["exhaustion"] if said <= SOON]
    print(f"said to fill within {SOON:g} s: {len(soon)}, did within twice that: {sum(w <= 2 * SOON for w in soon)}")
    for kind, rows in every.items():
        within = [abs(s - w) <= max(0.25 * w, 3.0) for s, w in rows]
        share = f"{sum(within) / len(within):.0%}" if within else "-"
        print(f"all: {summary(kind, rows)}; within 25 % or 3: {share}")


if __name__ == "__main__":
    main()
