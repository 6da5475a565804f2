"""Alertmanager's API v2: alerts with a stable set of labels, sent again while they last, ended by `endsAt`."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from diagnoser.errors import UsageError
from diagnoser.language import Language
from diagnoser.service.notify.base import ACCEPTED, Outcome, read_secret
from diagnoser.service.notify.event import Event, Message
from diagnoser.service.notify.fields import Rate
from diagnoser.service.notify.http import open_client, post
from diagnoser.service.notify.settings import AlertmanagerSettings
from diagnoser.service.notify.words import description, first_remedy, headline
from diagnoser.service.records import OutboxItem

ALERTNAME = "EngineBottleneck"
LASTS_RESENDS = 4
"""A firing alert ends after so many resend intervals without a word from us, as Prometheus does it."""
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Alertmanager:
    """One receiver of kind `alertmanager`."""

    def __init__(
        self,
        name: str,
        settings: AlertmanagerSettings,
        language: Language,
        rate: Rate | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.rate = name, rate
        self._settings, self._language, self._clock = settings, language, clock
        self._headers()
        self._client = open_client(settings.ca_file)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._settings.tenant is not None:
            headers["X-Scope-OrgID"] = self._settings.tenant
        if self._settings.bearer is not None:
            headers["Authorization"] = f"Bearer {read_secret(self._settings.bearer)[0]}"
        if self._settings.basic is not None:
            pair = read_secret(self._settings.basic)[0]
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return headers

    async def deliver(self, item: OutboxItem) -> Outcome:
        """All events of the message in one POST. The end of a firing one counts from now, however late this is."""
        message = Message.from_json(item.payload)
        events = [event for one in (message, *message.messages) for event in one.events]
        if not events:
            return ACCEPTED
        until = self._clock() + LASTS_RESENDS * self._settings.resend_every
        alerts = [alert(event, until, self._language) for event in events]
        content = json.dumps(alerts, ensure_ascii=False).encode("utf-8", "replace")
        try:
            headers = self._headers()
        except UsageError as error:
            return Outcome(False, True, str(error))
        url = f"{self._settings.url}/api/v2/alerts"
        return await post(self._client, url, content, headers, self._settings.timeout)

    async def close(self) -> None:
        """Ends the connections."""
        await self._client.aclose()


def labels(event: Event) -> dict[str, str]:
    """Whose alert it is. Nothing in it changes while the alert lasts, or Alertmanager would see another one."""
    found = {
        **{name: value for name, value in event.labels.items() if _LABEL.fullmatch(name)},
        "alertname": ALERTNAME,
        "instance": event.target,
        "rank": event.rank,
        "model": event.model or "",
        "engine_family": event.family,
        "bottleneck": event.bottleneck,
        "severity": event.severity,
    }
    return {name: value for name, value in found.items() if value}


def alert(event: Event, until: float, language: Language) -> dict[str, Any]:
    """One alert of POST /api/v2/alerts; `until` is the end of a firing one, in unix seconds."""
    return {
        "labels": labels(event),
        "annotations": {
            "summary": headline(event, language),
            "description": description(event, language),
            "remedy": first_remedy(event, language),
            "mode": event.mode or "",
            "confidence": event.confidence,
            "l2": event.l2,
            "runbook_url": event.runbook_url,
        },
        "startsAt": _stamp(event.starts_at),
        "endsAt": _stamp(until if event.ends_at is None else event.ends_at),
        "generatorURL": event.url,
    }


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
