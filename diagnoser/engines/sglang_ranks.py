"""Whose series is it? SGLang repeats numbers over ranks, processes and priorities; this picks one of each.

Usage and queue gauges come from the leader of each data-parallel rank (attention TP rank 0, every pipeline stage);
constants, retractions, queue times and decode passes come from every TP rank; with --enable-metrics-for-all-schedulers
everything does. So nothing is ever summed over tp_rank or pp_rank. Source: metrics_collector.py (MetricsManager).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from diagnoser.engines.page import Labels, Page, Scope
from diagnoser.engines.sglang_names import CAPACITY, QUEUE

ALL_RANKS = " (all ranks)"
_EVICTED = ("sglang:evicted_tokens_total", "sglang:eviction_duration_seconds_count")
_EVERY_TP_RANK = (CAPACITY, "sglang:queue_time_seconds_count", "sglang:cuda_graph_passes_total")


@dataclass(frozen=True, slots=True)
class Leader:
    """The reporting scheduler of one data-parallel rank; None = the label does not exist."""

    dp_rank: str | None
    tp_rank: str | None
    pp_rank: str | None

    @property
    def rank(self) -> str:
        """The rank as it is shown: "0" without data parallelism."""
        return self.dp_rank or "0"

    def owns(self, labels: Labels) -> bool:
        """Is it this scheduler's series, and the total where priorities are broken down?"""
        own = all(labels.get(key) in (None, value) for key, value in self._keys().items() if value is not None)
        return own and labels.get("priority", "") == ""

    def _keys(self) -> Mapping[str, str | None]:
        return {"dp_rank": self.dp_rank, "tp_rank": self.tp_rank, "pp_rank": self.pp_rank}


def leaders(page: Page) -> tuple[Leader, ...]:
    """One leader a data-parallel rank, in order. A cold engine has only constants, which every TP rank writes."""
    found = {**_lowest(page, (CAPACITY,)), **_lowest(page, QUEUE)}
    return tuple(sorted(found.values(), key=lambda leader: _number(leader.dp_rank)))


def _lowest(page: Page, metrics: Iterable[str]) -> Mapping[str | None, Leader]:
    """The lowest tp_rank and pp_rank that write the metrics, by data-parallel rank."""
    found: dict[str | None, Leader] = {}
    for labels in _series_labels(page, metrics):
        leader = Leader(labels.get("dp_rank"), labels.get("tp_rank"), labels.get("pp_rank"))
        if leader.dp_rank not in found or _order(leader) < _order(found[leader.dp_rank]):
            found[leader.dp_rank] = leader
    return found


def scopes(page: Page, leader: Leader, ranks: int) -> Mapping[str, Scope]:
    """What belongs to a leader: its own series, those of the whole server, and its part of the cache counters."""
    shared = ALL_RANKS if ranks > 1 else ""
    return {
        "rank": Scope(leader.owns),
        "server": Scope(lambda labels: True, shared),
        "alone": Scope(lambda labels: ranks == 1),
        "cache": _cache(page, leader, ranks),
    }


def _cache(page: Page, leader: Leader, ranks: int) -> Scope:
    """Cache counters name no rank up to 0.5.20 and add the TP ranks; later plain replicas all write dp_rank 0."""
    shared = ALL_RANKS if ranks > 1 else ""
    if not page.label_values(_EVICTED, "tp_rank"):
        copies = max(1, len(page.label_values(_EVERY_TP_RANK, "tp_rank")))
        return Scope(lambda labels: True, shared, 1.0 / copies)
    own_ranks = page.label_values(_EVICTED, "dp_rank")
    per_rank = len(own_ranks) == ranks
    dp_rank = leader.rank if per_rank else (own_ranks or ["0"])[0]
    tp_rank = _first_tp_rank(page, dp_rank)
    return Scope(
        lambda labels: labels.get("dp_rank", dp_rank) == dp_rank and labels.get("tp_rank") == tp_rank,
        "" if per_rank else shared,
    )


def _first_tp_rank(page: Page, dp_rank: str) -> str | None:
    found = {
        labels["tp_rank"] for labels in _series_labels(page, _EVICTED) if labels.get("dp_rank", dp_rank) == dp_rank
    }
    return min(found, key=_number, default=None)


def _series_labels(page: Page, metrics: Iterable[str]) -> Iterable[Labels]:
    return (sample.labels for metric in metrics for sample in page.named(metric))


def _order(leader: Leader) -> tuple[int, int]:
    return _number(leader.tp_rank), _number(leader.pp_rank)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else -1
