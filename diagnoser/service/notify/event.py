"""What is told: events of engine ranks, answers to alerts, and messages that hold them. Plain data, without words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from diagnoser.service.board import Key


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
