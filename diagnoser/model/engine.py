"""What an engine said, in one dialect: readings, pool, host tier; an instant, and a window of instants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal


@dataclass(frozen=True, slots=True)
class Range:
    """A quantity that is only known to lie within [low, high]."""

    low: float
    high: float


Quantity = float | Range | None


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of configuration and where it came from, e.g. ("max_num_seqs", 64, "--facts prod.json")."""

    name: str
    value: float | str | bool
    origin: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One number under our own name. `series` is the name (and labels that matter) on the page."""

    value: float
    series: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative Prometheus histogram: `counts[i]` observations <= `edges[i]`; the last edge is +Inf."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float
    series: str

    @property
    def count(self) -> float:
        """Observations so far."""
        return self.counts[-1] if self.counts else 0.0


@dataclass(frozen=True, slots=True)
class BadSeries:
    """A series that was rejected as evidence: negative, above one, NaN, duplicated by pid or rank."""

    series: str
    reason: str
    fatal: bool = False
    """True when the verdict of this engine rests on it, so that the verdict must be unknown."""


@dataclass(frozen=True, slots=True)
class PoolState:
    """The device KV pool of one engine rank in tokens, each a number, a Range or None with `reason`.

    used: held by requests; evictable: cached prefixes that can be reclaimed at once; available: truly free.
    The three sum to `capacity`. `name` tells the pool ("kv", "swa", "state") where an engine has several.
    """

    capacity: float | None = None
    used: Quantity = None
    evictable: Quantity = None
    available: Quantity = None
    reason: str = ""
    name: str = "kv"


class L2State(StrEnum):
    """State of the host tier. Only `idle_space` may be worded "L2 is half empty"."""

    ABSENT = "absent"
    GOVERNS_ADMISSION = "governs_admission"
    IDLE_SPACE = "idle_space"
    IDLE_TRAFFIC = "idle_traffic"
    FULL_NORMAL = "full_normal"
    TOO_SMALL = "too_small"
    SLOW = "slow"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TierSeries:
    """Where a metrics server finds one number of a host tier: a metric, labels that restrict it, how copies are joined
    ("max" or "sum"), and whose it is ("rank" or "server").
    """

    metric: str
    where: Mapping[str, str | tuple[str, ...]] | None = None
    take: Literal["max", "sum"] = "max"
    scope: Literal["rank", "server"] = "rank"


@dataclass(frozen=True, slots=True)
class TierState:
    """What one page says about the host tier at one instant.

    `presence` None means the page cannot tell. `capacity` and `resident` share `unit` (tokens, bytes, blocks).
    `resident_upper` is a sound upper bound of what can be resident (bytes ever stored), None where none exists.
    A gauge that counts blocks pinned by transfers never lands in `resident`. Cumulative counters feed rates over a
    window.
    """

    backend: str
    presence: bool | None
    unit: str = "bytes"
    capacity: float | None = None
    resident: float | None = None
    resident_upper: float | None = None
    governs_admission: bool = False
    counters: Mapping[str, Reading] = field(default_factory=dict)
    """Names: diagnoser/tiers/base.py, COUNTERS."""
    gauges: Mapping[str, Reading] = field(default_factory=dict)
    reason: str = ""
    scope: str = "engine"
    """Whose it is: engine, node or cluster. Counters of a shared tier say nothing of one engine's progress."""
    at: float | None = None
    """Unix seconds of its page where that is not the engine's own."""


@dataclass(frozen=True, slots=True)
class EngineId:
    """Identity of one engine rank. `family` is the adapter's name, `rank` the data-parallel rank as a string."""

    family: str
    target: str
    rank: str = "0"
    version: str | None = None
    model: str | None = None


NOT_IN_VERSION = "not in this version"
"""How a reason in `Snapshot.missing` begins when a newer release exports the reading (engines/normalise.py)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One engine rank at one instant, in our own names (diagnoser/engines/base.py lists them).

    `missing` says for each reading that is not there why, with the first version that has it.
    """

    engine: EngineId
    at: float
    readings: Mapping[str, Reading]
    histograms: Mapping[str, Histogram]
    missing: Mapping[str, str]
    pool: PoolState
    other_pools: tuple[PoolState, ...] = ()
    l2: TierState | None = None
    bad_series: tuple[BadSeries, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def value(self, name: str) -> float | None:
        """The reading `name`, or None if this page has none."""
        reading = self.readings.get(name)
        return None if reading is None else reading.value


@dataclass(frozen=True, slots=True)
class Window:
    """All that is known of one engine rank in (end - seconds, end]: snapshots in time order and failed polls.

    `facts` are merged: later sources (files, flags) override earlier ones (labels, HTTP).
    `failures` holds (unix seconds, sentence) of every failed poll of the target inside the window.
    """

    engine: EngineId
    end: float
    seconds: float
    snapshots: tuple[Snapshot, ...]
    failures: tuple[tuple[float, str], ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
