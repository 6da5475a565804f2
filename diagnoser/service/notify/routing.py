"""Which receiver is told of which engine rank, by which route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from diagnoser.model import Diagnosis
from diagnoser.service.notify.settings import NotifySettings, Receiver, Route
from diagnoser.service.notify.watch import Seen, State, Times

RANKS = {"info": 0, "warning": 1, "critical": 2}


@dataclass(frozen=True, slots=True)
class Plan:
    """One receiver with its routes."""

    receiver: Receiver
    routes: tuple[Route, ...]

    @property
    def name(self) -> str:
        """Of the receiver."""
        return self.receiver.name

    @property
    def stateful(self) -> bool:
        """An Alertmanager keeps the state of alerts itself: it groups, is told again, and is told every end."""
        return self.receiver.alertmanager is not None

    def route(self, labels: Mapping[str, str], diagnosis: Diagnosis, last: Route | None) -> Route | None:
        """The first that wants this verdict of an engine rank with these labels. If none does, the one that wanted the
        last (so that its end goes the same way), or the first that would take another verdict of it.
        """
        found = [route for route in self.routes if _takes(route, labels)]
        wanting = next((route for route in found if wants(route, diagnosis)), None)
        return wanting or (last if last in found else None) or next(iter(found), None)


def plans(settings: NotifySettings) -> tuple[Plan, ...]:
    """One a receiver that some route names. Without routes every receiver is told of everything."""
    routes = settings.routes
    if not routes and settings.receivers:
        routes = (Route(receivers=tuple(receiver.name for receiver in settings.receivers)),)
    found = (Plan(one, tuple(route for route in routes if one.name in route.receivers)) for one in settings.receivers)
    return tuple(plan for plan in found if plan.routes)


def _takes(route: Route, labels: Mapping[str, str]) -> bool:
    return (
        _any(route.models, labels.get("model", ""))
        and _any(route.targets, labels.get("target", ""))
        and all(fnmatchcase(labels.get(name, ""), glob) for name, glob in route.match.items())
    )


def _any(globs: Sequence[str], value: str) -> bool:
    return not globs or any(fnmatchcase(value, glob) for glob in globs)


def seen(route: Route, diagnosis: Diagnosis, told: State | None) -> Seen:
    """What the verdict is to this route. Unknown says nothing about an alert that fires for something known."""
    verdict = diagnosis.verdict
    if verdict.bottleneck == "unknown" and told is not None and told.bottleneck != "unknown":
        return "blind"
    return State(verdict.bottleneck, verdict.severity) if wants(route, diagnosis) else "good"


def wants(route: Route, diagnosis: Diagnosis) -> bool:
    """Is the verdict bad enough for it, and of its kind?"""
    verdict = diagnosis.verdict
    kind = verdict.bottleneck in route.bottlenecks or not route.bottlenecks
    return verdict.bottleneck != "none" and kind and RANKS[verdict.severity] >= RANKS[route.min_severity]


def times(route: Route) -> Times:
    """How long things must last."""
    return Times(route.hold, route.hold if route.resolve_after is None else route.resolve_after)


def labels_of(diagnosis: Diagnosis, labels: Mapping[str, str]) -> dict[str, str]:
    """What routes, groups and silences match: labels of the target, and our own."""
    engine, verdict = diagnosis.engine, diagnosis.verdict
    return {
        **labels,
        "target": engine.target,
        "rank": engine.rank,
        "model": engine.model or "",
        "family": engine.family,
        "bottleneck": verdict.bottleneck,
        "mode": verdict.mode or "",
        "severity": verdict.severity,
    }
