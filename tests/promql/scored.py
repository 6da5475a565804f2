"""Both evaluators against what the engines counted themselves, at the same instants.

As in a real fleet every target is scraped at a time of its own: starts are spread over one interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fleet.recordings_into import COMMON_END, Slim
from prometheus.servers import Stored
from score.scoring import expected, thinned, truth_of
from story import BOOK

from diagnoser.model import Diagnosis
from diagnoser.pipeline import History, diagnose
from diagnoser.promql.evaluate import Wanted
from diagnoser.replay import scrapes
from diagnoser.sources.recording import RecordedTarget, open_recording

from .conftest import ask_all

START = COMMON_END - 360.0
SPREAD = 0.618
"""Part of an interval by which one start lies after the one before: the golden section leaves no gap."""
DIRECT = "direct"


@dataclass(frozen=True)
class Judged:
    """Windows to judge, every so many seconds."""

    every: int
    window: float
    step: float


@dataclass
class Tally:
    """Right and wrong windows of one evaluator."""

    judged: int = 0
    right: int = 0
    wrong: Counter[str] = field(default_factory=Counter)

    @property
    def accuracy(self) -> float:
        return self.right / self.judged if self.judged else 1.0

    def add(self, found: Diagnosis, want: set[str]) -> None:
        """One window."""
        got = found.verdict.bottleneck
        self.judged += 1
        self.right += got in want
        if got not in want:
            self.wrong[f"{found.engine.target}: {'|'.join(sorted(want))} -> {got}"] += 1


@dataclass(frozen=True)
class Truth:
    """One recording: its pages on the common timeline, as a server and as Python hold them, and what really was."""

    rows: Mapping[str, list[dict[str, Any]]]
    stored: Stored
    history: History

    def want(self, at: float, rank: str, window: float) -> set[str] | None:
        """The right verdicts, None where the window is not judged."""
        own = at - self.stored.shift
        polls = [(page.at, page.text is not None) for page in self.stored.recorded.pages()]
        if not polls[0][0] + window - 0.5 <= own <= polls[-1][0]:
            return None
        return expected(own, window, self.rows.get(rank, []), polls)


def truths(paths: Iterable[Path], every: int) -> list[Truth]:
    """Recordings that have a truth file, each with every n-th page."""
    found = []
    for i, path in enumerate(sorted(paths)):
        name = path.name.removesuffix(".tar.xz")
        (target,) = open_recording(path).targets
        kept = thinned(RecordedTarget(name, {}, target._polls), every)
        shift = START + (i * SPREAD % 1) * every - kept.times[0]
        history = History(name, 1e9)
        for scrape in scrapes(kept):
            history.add(replace(scrape, at=scrape.at + shift))
        found.append(Truth(truth_of(path), Slim(kept, {"job": "llm", "instance": name}, shift=shift), history))
    return found


def score(urls: Mapping[str, str], known: list[Truth], how: Judged) -> dict[str, Tally]:
    """A tally an evaluator: the servers' names, and "direct"."""
    last = max(one.stored.recorded.times[-1] + one.stored.shift for one in known)
    steps = range(int((last - START - how.window) / how.step) + 1)
    instants = [START + how.window + (k + 0.5) * how.step for k in steps]
    asked = ask_all(urls, [Wanted(at, how.window, step=float(how.every)) for at in instants])
    tallies = {name: Tally() for name in (DIRECT, *urls)}
    for k, at in enumerate(instants):
        for one in known:
            for found in diagnose(one.history.windows(at, how.window), BOOK):
                want = one.want(at, found.engine.rank, how.window)
                if want is None:
                    continue
                tallies[DIRECT].add(found, want)
                for name in urls:
                    got = asked[name][k].of(found.engine.target, found.engine.rank)
                    assert got is not None, (name, found.engine)
                    tallies[name].add(got[1], want)
    return tallies
