"""Domain types, in the order data flows: Target -> Scrape -> Snapshot -> Window -> SignalValue -> CheckResult ->
Verdict.

Standard library only, all frozen. Units are in the names: _seconds, _tokens, _ratio (0..1), _total (counter).
"L1" is the KV pool in device memory, "L2" the host tier, whatever an engine calls them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

# ---------------------------------------------------------------- what was fetched


@dataclass(frozen=True, slots=True)
class Target:
    """One address or recording that yields pages. `name` is what the user called it and what every message shows."""

    name: str
    url: str = ""


class Sample(NamedTuple):
    """One line of an exposition page. `labels` may be shared between scrapes: never change it."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Scrape:
    """One fetch of one page, never two: all samples are of the same instant.

    `at` is unix seconds. A failed fetch has `error` (one sentence for the user) and no samples.
    `series_total` counts every series on the page, also those nobody asked for; `bad_lines` those that no parser
    could read.
    """

    target: Target
    at: float
    samples: tuple[Sample, ...] = ()
    error: str | None = None
    series_total: int = 0
    bad_lines: int = 0


# ---------------------------------------------------------------- what an engine said, in one dialect


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


# ---------------------------------------------------------------- what follows from it


@dataclass(frozen=True, slots=True)
class SignalValue:
    """One signal over one window. Exactly one of `value` and `missing_reason` is set.

    `series` names what it was computed from, for the evidence lines.
    """

    name: str
    unit: str
    value: float | None = None
    missing_reason: str = ""
    series: tuple[str, ...] = ()


class Answer(StrEnum):
    """Three-valued: a check that cannot run is unknown, never no."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


Severity = Literal["info", "warning", "critical"]
Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One compared number behind an answer: `signal op threshold`, with the value found and the series it came from."""

    signal: str
    value: float | None
    unit: str
    op: str = ""
    threshold: float | None = None
    series: tuple[str, ...] = ()
    missing_reason: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Answer to one question of the checklist."""

    id: str
    question: str
    answer: Answer
    reason: str
    evidence: tuple[Evidence, ...] = ()
    severity: Severity = "info"
    label: str = ""
    """Two or three words for the checklist line."""
    kind: str = ""
    """data, checklist, look-alike or finding."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to do, with the engine's real flag, what it brings and what it costs."""

    id: str
    action: str
    flag: str
    effect: str
    side_effect: str


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What one change would do to admission, as far as the window tells.

    `helps` None means that it cannot be said. `concurrency` is requests that could run, `rho` arrivals over what could
    be served after the change, `queue_growth` requests a second (negative: it drains).
    """

    id: str
    change: str
    helps: bool | None
    reason: str = ""
    """Why nothing changes, or why nothing can be said; else empty."""
    concurrency: float | None = None
    rho: float | None = None
    queue_growth: float | None = None
    queue: str = ""
    """The queue in words: "drains in 40 s", "grows by 0.3 a second"."""
    assumption: str = ""
    error: str = ""
    pool_tokens: float | None = None
    """The pool that is asked for, where the change is a pool, with its lower and upper estimate."""
    pool_low_tokens: float | None = None
    pool_high_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something true beside the verdict: imbalance, frozen_metrics, invalid_series, restart, thrash, ..."""

    code: str
    severity: Severity
    text: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which gate was closed over the window. `shares` sums to 1 over the gates and "none".

    `rule` is the entry of the decision list that led to it, `decisive` the checks its confidence rests on.
    """

    bottleneck: str
    severity: Severity
    confidence: Confidence
    headline: str
    mode: str | None = None
    l2: L2State = L2State.UNKNOWN
    shares: Mapping[str, float] = field(default_factory=dict)
    trend: str = "steady"
    because: tuple[str, ...] = ()
    rule: str = ""
    decisive: tuple[str, ...] = ()
    l2_reason: str = ""
    """Why the host tier is in that state."""
    l2_missing: tuple[str, ...] = ()
    """What is not known about it, where its state is unknown."""


@dataclass(frozen=True, slots=True)
class MoreL2:
    """Would a larger host tier help? The answer with its argument."""

    answer: Answer
    reason: str


@dataclass(frozen=True, slots=True)
class TtftPart:
    """One cause of TTFT. `kind`: measured, estimate, or unknown with the `reason`; `share` is of the mean."""

    name: str
    kind: Literal["measured", "estimate", "unknown"]
    seconds: float | None = None
    share: float | None = None
    reason: str = ""
    series: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ttft:
    """Time to first token by cause. Means add up, percentiles do not: P50 and P99 are buckets, (low, high]."""

    mean_seconds: float | None = None
    p50: tuple[float, float] | None = None
    p99: tuple[float, float] | None = None
    parts: tuple[TtftPart, ...] = ()
    basis: str = ""
    """Whose times the parts are: which requests, and when they were observed."""
    silent_seconds: float | None = None
    wait_estimate_seconds: float | None = None
    queue_age_estimate_seconds: float | None = None
    sentences: tuple[str, ...] = ()
    """What to know beside the numbers: estimates while the histograms lag, the tail, who is missing from them."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything one engine rank's window led to; what every output renders."""

    engine: EngineId
    at: float
    window_seconds: float
    scrapes: int
    verdict: Verdict
    l1: PoolState
    l2: TierState | None
    signals: Mapping[str, SignalValue]
    checks: tuple[CheckResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    not_remedies: tuple[str, ...] = ()
    """What would not help, with the reason ("a larger L2: it is 94 % free")."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    more_l2: MoreL2 | None = None
    ttft: Ttft | None = None
    what_if: tuple[WhatIf, ...] = ()
    """What each change would do, when a gate is closed."""
