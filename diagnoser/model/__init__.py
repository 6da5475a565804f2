"""Domain types, in the order data flows: Target -> Scrape -> Snapshot -> Window -> SignalValue -> CheckResult ->
Verdict.

Standard library only, all frozen. Units are in the names: _seconds, _tokens, _ratio (0..1), _total (counter).
"L1" is the KV pool in device memory, "L2" the host tier, whatever an engine calls them.
"""

from __future__ import annotations

from diagnoser.model.engine import (
    NOT_IN_VERSION,
    BadSeries,
    EngineId,
    Fact,
    Histogram,
    L2State,
    PoolState,
    Quantity,
    Range,
    Reading,
    Snapshot,
    TierSeries,
    TierState,
    Window,
)
from diagnoser.model.fetched import (
    Sample,
    Scrape,
    Target,
)
from diagnoser.model.verdict import (
    Answer,
    CheckResult,
    Confidence,
    Diagnosis,
    Evidence,
    Finding,
    MoreL2,
    Remedy,
    Severity,
    SignalValue,
    Ttft,
    TtftPart,
    Verdict,
    WhatIf,
)

__all__ = [
    "NOT_IN_VERSION",
    "Answer",
    "BadSeries",
    "CheckResult",
    "Confidence",
    "Diagnosis",
    "EngineId",
    "Evidence",
    "Fact",
    "Finding",
    "Histogram",
    "L2State",
    "MoreL2",
    "PoolState",
    "Quantity",
    "Range",
    "Reading",
    "Remedy",
    "Sample",
    "Scrape",
    "Severity",
    "SignalValue",
    "Snapshot",
    "Target",
    "TierSeries",
    "TierState",
    "Ttft",
    "TtftPart",
    "Verdict",
    "WhatIf",
    "Window",
]
