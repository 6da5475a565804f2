"""What follows from it: signals, answers with their evidence, the verdict and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from diagnoser.model.engine import EngineId, Fact, L2State, PoolState, TierState


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
