"""Plain counters of what the service does, for its own /metrics."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TargetStats:
    """Of one target, since it was first polled. Times in seconds."""

    polls: int = 0
    failures: int = 0
    missed: int = 0
    """Turns that had to be skipped because the one before had not ended, or the service was busy."""
    seconds: float = 0.0
    """Total time of polls."""
    last_seconds: float = 0.0
    last_bytes: int = 0
    last_at: float | None = None
    """Unix seconds of the last poll."""
    probes: int = 0
    """Connections tried while the target was dead."""


@dataclass(slots=True)
class Stats:
    """Of the whole service. The totals also count targets that are gone, so that they never fall."""

    polls: int = 0
    failures: int = 0
    missed: int = 0
    scrape_seconds: float = 0.0
    evaluations: int = 0
    evaluation_failures: int = 0
    evaluation_seconds: float = 0.0
    last_evaluation_seconds: float = 0.0
    last_evaluation_at: float | None = None
    reloads: int = 0
    reload_failures: int = 0
    targets: dict[str, TargetStats] = field(default_factory=dict)
    """By the target's name."""

    def target(self, name: str) -> TargetStats:
        """The counters of that target."""
        return self.targets.setdefault(name, TargetStats())
