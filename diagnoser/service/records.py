"""What the history file keeps, as values."""

from __future__ import annotations

from dataclasses import dataclass

from diagnoser.service.board import Key


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """One message on its way. `id` is the idempotency key: adding the same id again is no second item.

    Times are unix seconds. `state`: pending, done (the receiver accepted it) or dead (given up).
    """

    id: str
    receiver: str
    kind: str
    payload: str
    """JSON."""
    created_at: float
    next_at: float
    attempts: int = 0
    state: str = "pending"
    error: str = ""


@dataclass(frozen=True, slots=True)
class VerdictPoint:
    """The worst verdict of one rank in one step of a range. `at` is the start of the step, in unix seconds."""

    at: float
    key: Key
    bottleneck: str
    mode: str | None
    severity: str
    confidence: str
    l2: str
    headline: str
    """Of the transition that led to it; empty if that is older than the history."""


@dataclass(frozen=True, slots=True)
class WebhookResult:
    """What one alert of an inbound webhook led to. `id` is stable for an alert, so that a repeat replaces."""

    id: str
    group_key: str
    fingerprint: str
    status: str
    received_at: float
    body: str
    """JSON."""
