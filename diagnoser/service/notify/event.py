"""What is told: events of engine ranks, answers to alerts, and messages that hold them. Plain data, without words."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from diagnoser.model import Diagnosis
from diagnoser.service.board import Key

NUMBERS = (
    "waiting_max_requests",
    "waiting_last_requests",
    "running_max_requests",
    "l1_used_ratio_max",
    "ttft_p99_low_seconds",
    "ttft_p99_high_seconds",
    "preemptions_per_completion",
    "slots_limit_requests",
    "idle_used_seconds",
)
"""Signals that a message may show."""


def fingerprint(*parts: object) -> str:
    """A short name for what these parts are: the same for the same parts, in every process."""
    return hashlib.sha256("\n".join(str(part) for part in parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Event:
    """A verdict of one engine rank that began (firing), or that is over (resolved).

    `alert` names the alert from its first message to its last. Times are unix seconds. `reason` of a resolved one:
    recovered, changed (another alert took its place) or gone (the engine is watched no more).
    """

    kind: Literal["firing", "resolved"]
    alert: str
    at: float
    starts_at: float
    target: str
    rank: str
    family: str
    bottleneck: str
    severity: str
    headline: str
    ends_at: float | None = None
    version: str | None = None
    model: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the target, from the configuration or discovery."""
    rule: str = ""
    mode: str | None = None
    confidence: str = ""
    l2: str = "unknown"
    share: float | None = None
    """Part of the window that the gate was closed."""
    window_seconds: float = 0.0
    numbers: Mapping[str, float] = field(default_factory=dict)
    because: tuple[str, ...] = ()
    remedy: Mapping[str, str] | None = None
    """The first: id, action, flag, effect, side_effect."""
    reason: str = ""
    now: Mapping[str, str] | None = None
    """Of a resolved one, the verdict that holds now: rule, headline, l2."""
    was: Mapping[str, str] | None = None
    """Of a firing one that took another's place, that one's: rule, headline, l2, severity."""
    url: str = ""
    runbook_url: str = ""

    @property
    def key(self) -> Key:
        """Whose it is."""
        return Key(self.target, self.rank)

    def as_data(self) -> dict[str, Any]:
        """JSON-ready. Faster than `asdict`, which copies all that is inside."""
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = tuple(Event.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Asked:
    """An alert of an Alertmanager that was diagnosed. `verdicts` are of its own window, in `Message.events`."""

    name: str
    status: str
    labels: Mapping[str, str]
    starts_at: float
    ends_at: float | None
    start: float
    end: float
    named: int = 0
    """Engine ranks that the alert names; more than there are verdicts if they are too many."""
    newest: tuple[str, ...] = ()
    """Engine ranks of whose time no page is kept: their verdict is the newest instead."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one receiver gets at once. `subject`: messages of one subject arrive in their order."""

    subject: str
    events: tuple[Event, ...] = ()
    group: Mapping[str, str] = field(default_factory=dict)
    asked: Asked | None = None
    messages: tuple[Message, ...] = ()
    """Of a digest: what the rate limit held back."""

    @property
    def kind(self) -> str:
        """alerts, answer or digest."""
        return "digest" if self.messages else "answer" if self.asked else "alerts"

    def to_json(self) -> str:
        """For the outbox."""
        return json.dumps(self.as_data(), allow_nan=False)

    def as_data(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "subject": self.subject,
            "events": [event.as_data() for event in self.events],
            "group": self.group,
            "asked": None if self.asked is None else asdict(self.asked),
            "messages": [message.as_data() for message in self.messages],
        }

    @classmethod
    def from_json(cls, text: str) -> Message:
        """Of the outbox."""
        return _message(json.loads(text))


def _message(data: dict[str, Any]) -> Message:
    return Message(
        data["subject"],
        tuple(event_from(one) for one in data["events"]),
        data["group"],
        None if data["asked"] is None else _asked(data["asked"]),
        tuple(_message(one) for one in data["messages"]),
    )


def _asked(data: Mapping[str, Any]) -> Asked:
    known = {name: value for name, value in data.items() if name in Asked.__dataclass_fields__}
    return Asked(**{**known, "newest": tuple(data.get("newest", ()))})


def event_from(data: Mapping[str, Any]) -> Event:
    """What `Event.as_data` gave, after JSON. Fields that this version does not know are left out."""
    known = {name: value for name, value in data.items() if name in _FIELDS}
    return Event(**{**known, "because": tuple(data.get("because", ()))})


@dataclass(frozen=True, slots=True)
class Links:
    """Where people look further: this service, and its page of a verdict unless a template says otherwise."""

    base_url: str
    runbook_url: str = ""

    def engine(self, key: Key) -> str:
        """Page of an engine rank."""
        return f"{self.base_url}/api/v1/engines/{quote(key.id, safe='', errors='replace')}"

    def runbook(self, diagnosis: Diagnosis) -> str:
        """What to do about a verdict."""
        verdict = diagnosis.verdict
        if not self.runbook_url:
            return f"{self.base_url}/api/v1/rules/verdicts/{quote(verdict.rule, safe='')}"
        words = {"rule": verdict.rule, "bottleneck": verdict.bottleneck, "mode": verdict.mode or ""}
        text = self.runbook_url
        for name, value in words.items():
            text = text.replace(f"{{{name}}}", quote(value, safe=""))
        return text


def event_of(diagnosis: Diagnosis, starts_at: float, now: float, labels: Mapping[str, str], links: Links) -> Event:
    """A firing event: the verdict as it is."""
    engine, verdict = diagnosis.engine, diagnosis.verdict
    key = Key(engine.target, engine.rank)
    first = diagnosis.remedies[0] if diagnosis.remedies else None
    return Event(
        kind="firing",
        alert=fingerprint(key.id, verdict.bottleneck, verdict.severity, f"{starts_at:.3f}"),
        at=now,
        starts_at=starts_at,
        target=engine.target,
        rank=engine.rank,
        family=engine.family,
        version=engine.version,
        model=engine.model,
        labels=dict(labels),
        rule=verdict.rule,
        bottleneck=verdict.bottleneck,
        mode=verdict.mode,
        severity=verdict.severity,
        confidence=verdict.confidence,
        headline=verdict.headline,
        l2=verdict.l2.value,
        share=verdict.shares.get(verdict.bottleneck),
        window_seconds=diagnosis.window_seconds,
        numbers=_numbers(diagnosis),
        because=verdict.because,
        remedy=None if first is None else asdict(first),
        url=links.engine(key),
        runbook_url=links.runbook(diagnosis),
    )


def _numbers(diagnosis: Diagnosis) -> dict[str, float]:
    values = {name: diagnosis.signals[name].value for name in NUMBERS if name in diagnosis.signals}
    return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}


def verdict_words(event: Event) -> dict[str, str]:
    """What another event says of this one's verdict."""
    return {"rule": event.rule, "headline": event.headline, "l2": event.l2, "severity": event.severity}
