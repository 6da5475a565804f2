"""The samples of many targets: a few at once to a query, sized by the first answer, halved where one is too much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diagnoser.errors import ServerError, TooMuchError
from diagnoser.model import Scrape
from diagnoser.sources.prometheus.api import Answer, Series, Server, together
from diagnoser.sources.prometheus.pages import scrapes
from diagnoser.sources.prometheus.selectors import SLACK_SECONDS, instances, names, over, selector, with_up
from diagnoser.sources.prometheus.targets import Known, Owners

PROBE_TARGETS = 2
"""Targets of the first query, whose answer tells how many go into one."""
AIM_BYTES = 4 * 1024 * 1024
MAX_TARGETS = 100
MIN_METRICS = 8
"""Fewer metrics than this are not halved any more: one target's answer is too large, whatever is asked."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the server gave of one target. With `warnings` it may be incomplete; with `error` there is nothing."""

    target: Known
    scrapes: tuple[Scrape, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """The samples of `metrics` in the `seconds` before `at`, both ends included."""

    metrics: tuple[str, ...]
    at: float
    seconds: float


async def fetch(server: Server, targets: Sequence[Known], span: Span, take: Callable[[Fetched], None]) -> None:
    """Hands every target to `take` as soon as its samples are there. Raises ServerError if the first query fails.

    A later query that fails costs the targets that it asked for; the others stand.
    """
    probe, rest = targets[:PROBE_TARGETS], targets[PROBE_TARGETS:]
    if not probe:
        return
    before = server.bytes
    _deliver(server, probe, await _raw(server, probe, span), take)
    each = max(1, (server.bytes - before) // len(probe))
    size = max(1, min(MAX_TARGETS, AIM_BYTES // each))
    batches = [rest[start : start + size] for start in range(0, len(rest), size)]
    await together(_batch(server, batch, span, take) for batch in batches)


async def _batch(server: Server, targets: Sequence[Known], span: Span, take: Callable[[Fetched], None]) -> None:
    try:
        answer = await _raw(server, targets, span)
    except ServerError as error:
        for target in targets:
            take(Fetched(target, error=str(error)))
        return
    _deliver(server, targets, answer, take)


async def _raw(server: Server, targets: Sequence[Known], span: Span) -> Answer:
    where = instances(target.labels.get("instance", "") for target in targets)
    seconds = over(span.seconds + 2 * SLACK_SECONDS)
    try:
        return await server.query(selector(with_up(names(span.metrics)), where) + seconds, span.at + SLACK_SECONDS)
    except TooMuchError:
        if len(targets) > 1:
            half = len(targets) // 2
            parts = [(targets[:half], span), (targets[half:], span)]
        elif len(span.metrics) >= 2 * MIN_METRICS:
            half = len(span.metrics) // 2
            both = (span.metrics[:half], span.metrics[half:])
            parts = [(targets, Span(metrics, span.at, span.seconds)) for metrics in both]
        else:
            raise
    answers = await together(_raw(server, some, part) for some, part in parts)
    series = tuple(one for answer in answers for one in answer.series)
    return Answer(series, tuple(dict.fromkeys(text for answer in answers for text in answer.warnings)))


def _deliver(server: Server, targets: Sequence[Known], answer: Answer, take: Callable[[Fetched], None]) -> None:
    owners = Owners(targets)
    found: dict[str, list[Series]] = defaultdict(list)
    for series in answer.series:
        owner = owners.of(series.labels)
        if owner is not None:
            found[owner.name].append(series)
    for target in targets:
        read = scrapes(target, found.pop(target.name, ()), server.name, complete=not answer.warnings)
        take(Fetched(target, tuple(read), answer.warnings))
