"""Engines as a metrics server has stored them: its samples through the same pipeline as live pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diagnoser.engines import adapters
from diagnoser.errors import ServerError
from diagnoser.model import Fact, Scrape, Window
from diagnoser.pipeline import History, wanted_metrics
from diagnoser.promql.polls import LOST_AFTER
from diagnoser.sources.prometheus.api import Server
from diagnoser.sources.prometheus.fetch import Fetched, Span, fetch
from diagnoser.sources.prometheus.targets import discover

GONE_SECONDS, GONE_INTERVALS = 60.0, 2.5
"""A target without a sample for so long, by both measures, is scraped no more: its last state is not today's."""
SETTLE_SECONDS = 5.0
"""Samples younger than this may still be on their way into the server (remote write, flush to storage)."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Which engines, when. `match` is PromQL matchers ('job="vllm"'), "" = all."""

    at: float
    window: float
    match: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(slots=True)
class Served:
    """What the server gave. `doubted` are warnings by target, `gone` the names of those it scrapes no more."""

    windows: list[Window] = field(default_factory=list)
    doubted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    gone: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Why the server did not answer, by target."""
    blind: int = 0
    """Targets without `up`: their failed scrapes cannot be told from gaps."""
    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels that the server gave each target: job, instance, pod, ..."""


async def served(server: Server, wish: Wish) -> Served:
    """Every engine the server knows at that time, a window a rank. Raises ServerError if nothing can be said."""
    anchors = frozenset().union(*(adapter.anchors or adapter.metrics for adapter in adapters()))
    lookback = max(LOST_AFTER, wish.window)
    known = await discover(server, anchors, wish.match, wish.at, lookback)
    if not known.targets:
        raise ServerError(await _nobody(server, anchors, wish, lookback))
    found = Served(warnings=known.warnings)

    def take(fetched: Fetched) -> None:
        _take(found, fetched, wish)

    await fetch(server, known.targets, Span(tuple(sorted(wanted_metrics())), wish.at, wish.window), take)
    found.windows.sort(key=lambda window: window.engine.target)
    return found


def _take(found: Served, fetched: Fetched, wish: Wish) -> None:
    name = fetched.target.name
    if fetched.error is not None:
        found.failed[name] = fetched.error
    elif _gone(fetched.scrapes, wish.at):
        found.gone.append(name)
        return
    found.labels[name] = fetched.target.labels
    history = History(name, wish.window, wish.facts)
    for scrape in fetched.scrapes:
        history.add(scrape)
    found.windows += history.windows(wish.at, wish.window)
    found.blind += not fetched.target.has_up
    if fetched.warnings:
        found.doubted[name] = fetched.warnings
        found.warnings = tuple(dict.fromkeys(found.warnings + fetched.warnings))


def _gone(scrapes: Sequence[Scrape], at: float) -> bool:
    if not scrapes:
        return True
    interval = (scrapes[-1].at - scrapes[0].at) / max(1, len(scrapes) - 1)
    return at - scrapes[-1].at > max(GONE_SECONDS, GONE_INTERVALS * interval)


async def _nobody(server: Server, anchors: frozenset[str], wish: Wish, lookback: float) -> str:
    """Why there is no engine: nothing matches, no engine is scraped, or nothing at all is stored."""
    if wish.match:
        others = await discover(server, anchors, "", wish.at, lookback)
        if others.targets:
            names = ", ".join(target.name for target in others.targets[:3])
            return f"{server.name} has engines ({len(others.targets)}: {names}), but none with --match {wish.match}."
    for_an_hour = f"in the {lookback / 60:g} minutes before that time"
    anything = await server.query(f"count(last_over_time(up[{lookback:.0f}s]))", wish.at)
    if not anything.series:
        why = "is --at within its retention and in the right time zone, and is this the right tenant (--tenant)?"
        return f"{server.name} has no sample of anything {for_an_hour}: {why}"
    count = f"{anything.series[0].values[-1][1]:g} targets"
    advice = "does it scrape their /metrics (SGLang needs --enable-metrics), and is this the right tenant (--tenant)?"
    return f"{server.name} scrapes {count}, but has no series of vLLM or SGLang {for_an_hour}: {advice}"
