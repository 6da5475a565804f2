"""The service's own /metrics. Verdicts are read off the board when somebody scrapes: nothing stale can remain."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, GCCollector, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder

from diagnoser import __version__
from diagnoser.service.buckets import Buckets
from diagnoser.service.enginemetrics import engine_text

if TYPE_CHECKING:
    from diagnoser.service.api.sse import Events
    from diagnoser.service.service import Service
    from diagnoser.service.states import TargetState

EVENTS_ROUTE = "/api/v1/events"
"""A stream lasts as long as its reader wants: no duration of an answer."""


class Metrics:
    """The registry of one service."""

    def __init__(self, service: Service, events: Events) -> None:
        self.registry = CollectorRegistry()
        self._service, self._self = service, _Self(service, events)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._requests = Counter(
            "diagnoser_http_requests", "Requests answered.", ("route", "code"), registry=self.registry
        )
        self._durations = Histogram(
            "diagnoser_http_request_duration_seconds", "Time to answer a request.", ("route",), registry=self.registry,
            buckets=(0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0),
        )  # fmt: skip

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """One answer. `route` is the pattern, not the path: few values."""
        self._requests.labels(route, str(status)).inc()
        if route != EVENTS_ROUTE:
            self._durations.labels(route).observe(seconds)

    def snapshot(self, accept: str) -> Callable[[], tuple[bytes, str]]:
        """What is known now. The result makes the page and its media type of it, and may do so in another thread."""
        entries, own = self._service.board.entries(), list(self._self.collect())
        encode, media_type = choose_encoder(accept)

        def page() -> tuple[bytes, str]:
            rest = encode(_Collected((*own, *self.registry.collect())))
            return engine_text(entries).encode() + rest, media_type

        return page


class _Collected:
    """What an encoder wants to see of a registry."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class _Self:
    """The service itself."""

    def __init__(self, service: Service, events: Events) -> None:
        self._service, self._events = service, events

    def collect(self) -> Iterator[Metric]:
        """Polls, evaluations, history, notifications, configuration."""
        yield InfoMetricFamily("diagnoser_build", "Version of the service.", {"version": __version__})
        yield _gauge("start_time_seconds", "When the service started.", self._service.started_at)
        yield _gauge("event_clients", "Clients that read live events.", self._events.clients)
        yield from self._targets()
        yield from self._work()
        yield from self._notifications()
        yield from self._config()

    def _targets(self) -> Iterator[Metric]:
        states = self._service.targets()
        up = GaugeMetricFamily("diagnoser_target_up", "1 if the last poll gave a page.", labels=("target",))
        last = GaugeMetricFamily(
            "diagnoser_target_last_scrape_timestamp_seconds", "When it was polled last.", labels=("target",)
        )
        failures = CounterMetricFamily(
            "diagnoser_target_scrape_failures", "Polls that gave no page.", labels=("target",)
        )
        missed = CounterMetricFamily(
            "diagnoser_target_missed_polls", "Polls that the service was too busy for.", labels=("target",)
        )
        for state in states:
            if state.healthy is not None:
                up.add_metric((state.name,), float(state.healthy))
            if state.last_scrape_at is not None:
                last.add_metric((state.name,), state.last_scrape_at)
            told = self._service.stats.targets.get(state.name)
            if told is not None:
                failures.add_metric((state.name,), told.failures)
                missed.add_metric((state.name,), told.missed)
        yield from (up, last, failures, missed, _labels(states))
        yield _gauge("targets", "Targets that are polled.", len(states))
        broken = sum(bool(source.problem) for source in self._service.sources())
        yield _gauge("target_sources_failing", "Sources of addresses whose last refresh failed.", broken)

    def _work(self) -> Iterator[Metric]:
        stats, history = self._service.stats, self._service.history
        yield _counter("scrapes", "Polls of all targets.", stats.polls)
        yield _counter("scrape_failures", "Polls that gave no page.", stats.failures)
        yield _counter("missed_polls", "Polls that were skipped because the service was busy.", stats.missed)
        yield _counter("overrun_polls", "Polls that were skipped because the one before had not ended.", stats.overrun)
        yield from _durations("scrape_duration_seconds", "Time of one poll.", stats.scrape_durations)
        yield _counter("evaluations", "Rounds of evaluation of all engines.", stats.evaluations)
        yield _counter("evaluation_failures", "Rounds that failed.", stats.evaluation_failures)
        yield from _durations("evaluation_duration_seconds", "Time of one round.", stats.evaluation_durations)
        if stats.last_evaluation_at is not None:
            at = stats.last_evaluation_at
            yield _gauge("last_evaluation_timestamp_seconds", "End of the window evaluated last.", at)
        yield _gauge("history_healthy", "0: the history is not being written; verdicts go on.", history.healthy)

    def _notifications(self) -> Iterator[Metric]:
        alerting = self._service.alerting
        if alerting is not None:
            yield _gauge("outbox_depth", "Notifications that no receiver has accepted yet.", alerting.outbox.depth)
            yield _gauge("outbox_dead", "Notifications that were given up.", alerting.outbox.dead)

    def _config(self) -> Iterator[Metric]:
        last, loaded = self._service.last_reload, self._service.reloaded_at
        worked = last is None or last.ok
        yield _gauge("config_last_reload_successful", "0: the file is wrong, the old one is in use.", worked)
        yield _gauge("config_last_reload_success_timestamp_seconds", "When it was last taken over.", loaded)
        yield _gauge("rule_errors", "Rule files or entries that were skipped.", len(self._service.book.errors))
        yield _gauge("time_seconds", "The clock of the service.", time.time())


def _labels(states: Sequence[TargetState]) -> Metric:
    """Labels of the configuration and of discovery, to join with: `* on (target) group_left (label_team)`."""
    given = sorted({name for state in states for name in state.labels})
    names = {f"label_{re.sub('[^a-zA-Z0-9_]', '_', name)}": name for name in given}  # a-b and a_b are one
    words = "Labels that the target has in the configuration, always 1."
    family = GaugeMetricFamily("diagnoser_target_labels", words, labels=("target", *names))
    for state in states:
        family.add_metric((state.name, *(state.labels.get(name, "") for name in names.values())), 1.0)
    return family


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(f"diagnoser_{name}", words, value=float(value))


def _counter(name: str, words: str, value: float) -> Metric:
    return CounterMetricFamily(f"diagnoser_{name}", words, value=value)


def _durations(name: str, words: str, found: Buckets) -> Iterator[Metric]:
    yield HistogramMetricFamily(f"diagnoser_{name}", words, buckets=found.cumulative(), sum_value=found.sum)
