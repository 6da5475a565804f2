"""A histogram of durations as plain counters, so that who measures needs no metrics library."""

from __future__ import annotations

from bisect import bisect_left

EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds."""


class Buckets:
    """How many durations fell into each bucket, since the start."""

    def __init__(self, edges: tuple[float, ...] = EDGES) -> None:
        self.edges, self.sum = edges, 0.0
        self._counts = [0] * (len(edges) + 1)

    def observe(self, seconds: float) -> None:
        """Counts one duration."""
        self._counts[bisect_left(self.edges, seconds)] += 1
        self.sum += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper edge, durations up to it), the last edge being +Inf: as Prometheus wants them."""
        out, total = [], 0
        for edge, count in zip((*map(str, self.edges), "+Inf"), self._counts, strict=True):
            total += count
            out.append((edge, float(total)))
        return out
