"""Generic webhooks: JSON, signed with HMAC-SHA256 over the timestamp and the body."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from diagnoser.errors import UsageError
from diagnoser.language import Language
from diagnoser.service.notify.base import Outcome, read_secret
from diagnoser.service.notify.event import Message
from diagnoser.service.notify.fields import Rate
from diagnoser.service.notify.http import open_client, post
from diagnoser.service.notify.settings import WebhookTarget
from diagnoser.service.notify.words import text_of
from diagnoser.service.records import OutboxItem

SCHEMA_VERSION = 1


def signature(secrets: Sequence[str], timestamp: str, body: bytes) -> str:
    """ "v1=HEX" for each secret, separated by commas: one of them must be what the receiver computes."""
    signed = timestamp.encode() + b"." + body
    return ",".join(f"v1={hmac.new(one.encode(), signed, hashlib.sha256).hexdigest()}" for one in secrets)


class Webhook:
    """One receiver of kind `webhook`."""

    def __init__(
        self,
        name: str,
        settings: WebhookTarget,
        language: Language,
        rate: Rate | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.rate = name, rate
        self._settings, self._language, self._clock = settings, language, clock
        self._url(), self._secrets()  # a secret that cannot be read is an error of the configuration
        self._client = open_client(settings.ca_file)

    def _url(self) -> str:
        place = self._settings.secret_url
        if place is None:
            return self._settings.url or ""
        found = read_secret(place)[0]
        if not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", found):
            raise UsageError(f"{place.env or place.file} holds no address that begins with http:// or https://")
        return found

    def _secrets(self) -> tuple[str, ...]:
        place = self._settings.secret
        return read_secret(place) if place else ()

    async def deliver(self, item: OutboxItem) -> Outcome:
        """Secrets are read anew, so that a changed file needs no reload."""
        try:
            url, secrets = self._url(), self._secrets()
        except UsageError as error:
            return Outcome(False, True, str(error))
        content = json.dumps(body(item, self._language), ensure_ascii=False).encode("utf-8", "replace")
        return await post(self._client, url, content, self._headers(item, secrets, content), self._settings.timeout)

    def _headers(self, item: OutboxItem, secrets: Sequence[str], content: bytes) -> dict[str, str]:
        timestamp = f"{self._clock():.0f}"
        headers = {
            **{name: value.get_secret_value() for name, value in self._settings.headers.items()},
            "Content-Type": "application/json",
            "Idempotency-Key": item.id,
            "X-Diagnoser-Attempt": str(item.attempts),
            "X-Diagnoser-Timestamp": timestamp,
        }
        return {**headers, "X-Diagnoser-Signature": signature(secrets, timestamp, content)} if secrets else headers

    async def close(self) -> None:
        """Ends the connections."""
        await self._client.aclose()


def body(item: OutboxItem, language: Language) -> Mapping[str, Any]:
    """What is sent. `attempt` above 1: an earlier one may have arrived, its `id` is the same."""
    message = Message.from_json(item.payload)
    return {
        "schema_version": SCHEMA_VERSION,
        "id": item.id,
        "attempt": item.attempts,
        "created_at": item.created_at,
        **_content(message, language),
    }


def _content(message: Message, language: Language) -> dict[str, Any]:
    title, text = text_of(message, language)
    return {
        "kind": message.kind,
        "title": title,
        "text": text,
        "group": message.group,
        "events": [event.as_data() for event in message.events],
        "alert": None if message.asked is None else asdict(message.asked),
        "messages": [_content(one, language) for one in message.messages],
    }
