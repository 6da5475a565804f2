"""All recordings at once in one real server, each as an instance of its own: what parity tests ask.

    with recordings_into("prometheus", folder, every=15) as loaded:
        loaded.url, loaded.stored["vllm-0.32.0--c-l1-preempt"].recorded.times

Instances are named after their recordings. Stamps are those of the recordings, moved to a common `end` if one is given.
VictoriaMetrics stores decimal numbers: a double comes back with its last digit changed (1e10 + 25e-6 as 1e10 + 6e-6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prometheus.conftest import RECORDINGS, bare
from prometheus.servers import Stored, prometheus, victoria
from score.scoring import thinned

from diagnoser.pipeline import wanted_metrics
from diagnoser.sources.exposition import PageParser

COMMON_END = 1_795_976_100.0
"""An end that lets every recording lie within one two-hour block of Prometheus."""
PRODUCTS = {"prometheus": prometheus, "victoria": victoria}


@dataclass(frozen=True)
class Slim(Stored):
    """Only the series that diagnose reads; the text of each is made once. Half of the lines, a third of the time."""

    def lines(self, to_stamp: float) -> Iterator[str]:
        """Exposition lines with timestamps in seconds * `to_stamp`."""
        spelled: dict[str, str] = {}
        up = self._line("up 0", "").removesuffix("0 ")
        for page in self.recorded.pages():
            at = page.at + self.shift
            stamp = f"{at * to_stamp:.0f}" if to_stamp > 1 else f"{at:.3f}"
            if self.up:
                yield f"{up}{float(page.text is not None):g} {stamp}"
            for line in (page.text or "").splitlines():
                series, _, value = line.rpartition(" ")
                if series not in spelled:
                    spelled[series] = self._line(f"{series} 0", "").removesuffix("0 ") if is_read(series) else ""
                if spelled[series]:
                    yield f"{spelled[series]}{value} {stamp}"


@cache
def _parser() -> PageParser:
    return PageParser(wanted_metrics())


@cache
def is_read(series: str) -> bool:
    """Whether an adapter or tier reads it. Comments and blank lines are not."""
    return bool(series) and bool(_parser().parse(f"{series} 0\n").samples)


@dataclass(frozen=True)
class Loaded:
    """A server and what it holds, by instance."""

    url: str
    stored: Mapping[str, Stored]


def names() -> tuple[str, ...]:
    """Of all recordings."""
    return tuple(path.name.removesuffix(".tar.xz") for path in sorted(RECORDINGS.glob("*.tar.xz")))


def stored(every: int = 1, end: float | None = None) -> Mapping[str, Stored]:
    """All recordings with every n-th poll, polls being a second apart; moved so that each ends at `end`, if given."""
    kept = {}
    for name in names():
        target = thinned(bare(name), every)
        shift = 0.0 if end is None else end - target.times[-1]
        kept[name] = Slim(target, {"job": name.partition("-")[0], "instance": name}, shift=shift)
    return kept


@contextmanager
def recordings_into(kind: str, folder: Path, every: int = 1, end: float | None = None) -> Iterator[Loaded]:
    """A running server of that kind ("prometheus", "victoria") with all recordings in it, until the block ends."""
    held = stored(every, end)
    with PRODUCTS[kind](folder, held.values()) as url:
        yield Loaded(url, held)
