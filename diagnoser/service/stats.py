"""Plain counters of what the service does, for its own /metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from diagnoser.service.buckets import Buckets


@dataclass(slots=True)
class TargetStats:
    """Of one target, since it was first polled. Times in seconds."""

    polls: int = 0
    failures: int = 0
    missed: int = 0
    """Turns that were skipped because the service was busy."""
    overrun: int = 0
    """Turns that were skipped because the target took longer than its interval to answer."""
    seconds: float = 0.0
    """Total time of polls."""
    last_seconds: float = 0.0
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
    overrun: int = 0
    scrape_seconds: float = 0.0
    evaluations: int = 0
    evaluation_failures: int = 0
    evaluation_seconds: float = 0.0
    last_evaluation_seconds: float = 0.0
    last_evaluation_at: float | None = None
    scrape_durations: Buckets = field(default_factory=Buckets)
    evaluation_durations: Buckets = field(default_factory=Buckets)
    reloads: int = 0
    reload_failures: int = 0
    targets: dict[str, TargetStats] = field(default_factory=dict)
    """By the target's name."""

    def target(self, name: str) -> TargetStats:
        """The counters of that target."""
        return self.targets.setdefault(name, TargetStats())

    def polled(self, name: str, seconds: float, failed: bool, at: float) -> None:
        """One poll has ended at `at` (unix seconds)."""
        one = self.target(name)
        for counters in (self, one):
            counters.polls += 1
            counters.failures += failed
        self.scrape_seconds += seconds
        self.scrape_durations.observe(seconds)
        one.seconds += seconds
        one.last_seconds, one.last_at = seconds, at

    def skipped(self, name: str, turns: int, by_us: bool) -> None:
        """Turns of a target did not take place."""
        for counters in (self, self.target(name)):
            if by_us:
                counters.missed += turns
            else:
                counters.overrun += turns

    def evaluated(self, seconds: float, at: float) -> None:
        """One round of evaluation has ended."""
        self.evaluations += 1
        self.evaluation_seconds += seconds
        self.evaluation_durations.observe(seconds)
        self.last_evaluation_seconds, self.last_evaluation_at = seconds, at
