"""What is said about one incoming alert: which engines it means, and their verdict over its own time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from diagnoser.model import Diagnosis
from diagnoser.outputs.contract import as_data
from diagnoser.service.board import Board, Key
from diagnoser.service.inbound_settings import WebhookSettings
from diagnoser.service.notify.alertmanager import ALERTNAME
from diagnoser.service.notify.event import Asked, Event
from diagnoser.service.notify.payload import Alert
from diagnoser.service.notify.verdicts import Links, event_of
from diagnoser.service.relabel import choose, host_of, relabelled

KEPT = ("at", "window_seconds", "engine", "verdict", "l1", "would_more_l2_help", "findings", "remedies", "not_remedies")
"""Of a diagnosis, what a result keeps."""


class Engines(Protocol):
    """What is asked of the service."""

    board: Board

    async def diagnose_at(self, key: Key, start: float, end: float) -> Diagnosis | None:
        """The verdict over that time; None if no page of it is kept."""

    def labels_of(self, key: Key) -> Mapping[str, str]:
        """Labels of the engine's target."""


class Answering:
    """Answers by what the service knows, with one configuration."""

    def __init__(self, engines: Engines, settings: WebhookSettings, links: Links, clock: Callable[[], float]) -> None:
        self._engines, self._settings, self._links, self._clock = engines, settings, links, clock

    async def answer(self, alert: Alert) -> tuple[Asked, tuple[Event, ...], dict[str, Any]]:
        """The alert with its time, a verdict an engine rank, and the result as JSON-ready data."""
        start, end = self._time(alert)
        keys, reason = self._engines_of(alert)
        shown = keys[: self._settings.max_engines]
        if len(keys) > len(shown):
            reason = f"it names {len(keys)} engine ranks; these are the {len(shown)} worst now"
        found = [(key, *await self._diagnose(key, start, end)) for key in shown]
        events = tuple(self._event(key, diagnosis, start) for key, diagnosis, _ in found if diagnosis is not None)
        if found and not events:
            reason = found[0][2]
        asked = Asked(
            alert.labels.get("alertname", ""),
            alert.status,
            alert.labels,
            alert.starts_at.timestamp(),
            _end(alert),
            start,
            end,
            len(keys),
            tuple(key.id for key, diagnosis, why in found if diagnosis is not None and why),
        )
        body = {
            "alert": alert.model_dump(mode="json", by_alias=True),
            "window": {"start": start, "end": end},
            "diagnosed_at": self._clock(),
            "reason": reason,
            "engines": [_engine(*one) for one in found],
            "forwarded_to": list(self._settings.forward) if events else [],
        }
        return asked, events, body

    def _time(self, alert: Alert) -> tuple[float, float]:
        end = _end(alert)
        now = self._clock()
        start = alert.starts_at.timestamp() - self._settings.window
        return start, max(start + 1.0, now if end is None else min(end, now))

    def _engines_of(self, alert: Alert) -> tuple[list[Key], str]:
        """The worst first."""
        if alert.labels.get("alertname") == ALERTNAME:
            return [], "it is our own alert, which already says the verdict"
        labels = relabelled(alert.labels, self._settings.relabel, self._settings.defaults)
        if labels is None:
            return [], "the relabelling rules drop it"
        entries = {entry.key: entry.diagnosis.engine for entry in self._engines.board.entries()}
        known = {
            key: {
                **self._engines.labels_of(key),
                "target": key.target,
                "host": host_of(key.target),
                "rank": key.rank,
                "model": engine.model or "",
                "family": engine.family,
            }
            for key, engine in entries.items()
        }
        return choose(labels, known, self._settings.relabel)

    async def _diagnose(self, key: Key, start: float, end: float) -> tuple[Diagnosis | None, str]:
        found = await self._engines.diagnose_at(key, start, end)
        if found is not None:
            return found, ""
        entry = self._engines.board.get(key)
        if entry is not None and start <= entry.diagnosis.at <= end + entry.diagnosis.window_seconds:
            return entry.diagnosis, "no page of that time is kept: this is the newest verdict"
        return None, "no page of that time is kept, and the newest verdict is of another time"

    def _event(self, key: Key, diagnosis: Diagnosis, start: float) -> Event:
        return event_of(diagnosis, start, diagnosis.at, self._engines.labels_of(key), self._links)


def _end(alert: Alert) -> float | None:
    """Unix seconds; None while it fires, whatever end Alertmanager expects."""
    if alert.status == "firing" or alert.ends_at is None or alert.ends_at < datetime(1970, 1, 2, tzinfo=UTC):
        return None
    return alert.ends_at.timestamp()


def _engine(key: Key, diagnosis: Diagnosis | None, reason: str) -> dict[str, Any]:
    whole = {} if diagnosis is None else as_data(diagnosis)
    return {
        "engine": key.id,
        "target": key.target,
        "rank": key.rank,
        "reason": reason,
        "diagnosis": {name: whole[name] for name in KEPT} if whole else None,
    }
