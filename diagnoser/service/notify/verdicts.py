"""Verdicts as events, with links to where people look further."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from urllib.parse import quote

from diagnoser.model import Diagnosis
from diagnoser.service.board import Key
from diagnoser.service.notify.event import Event, fingerprint

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
