"""What the service says of itself: targets and reloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TargetState:
    """One target as it is now. `source` tells where its address came from ("static", "file_sd targets/a.json", ...).

    `healthy` None: not polled yet. `interval` in seconds, `last_scrape_at` in unix seconds.
    """

    name: str
    url: str
    source: str
    healthy: bool | None
    last_error: str
    last_scrape_at: float | None
    interval: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceState:
    """One source of addresses: `problem` says why its last refresh failed, "" = none; its last good list stands."""

    name: str
    kind: str
    targets: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """`ok`, or why the old configuration was kept; `at` in unix seconds."""

    ok: bool
    reason: str = ""
    at: float = 0.0
