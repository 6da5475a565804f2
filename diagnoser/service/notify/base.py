"""What a receiver is to the outbox: something that takes a message, or says why not and when to come back."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from diagnoser.errors import UsageError
from diagnoser.service.notify.fields import Rate, Secret
from diagnoser.service.records import OutboxItem


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one attempt. Not accepted and not `retry`: it can never succeed as it is.

    `reason` is a sentence without secrets; `retry_after` is what the receiver asked for, in seconds.
    """

    accepted: bool
    retry: bool = False
    reason: str = ""
    retry_after: float | None = None


ACCEPTED = Outcome(True)


class Notifier(Protocol):
    """One receiver."""

    @property
    def name(self) -> str:
        """As configured."""

    @property
    def rate(self) -> Rate | None:
        """How many messages it may get; None is any number."""

    def deliver(self, item: OutboxItem) -> Awaitable[Outcome]:
        """One attempt, within a time limit. Raises for nothing that a receiver may do."""

    async def close(self) -> None:
        """Ends its connections."""


def read_secret(secret: Secret) -> tuple[str, ...]:
    """The lines of a secret, without empty ones and comments. UsageError names the place, never the content."""
    if secret.env is not None:
        text, place = os.environ.get(secret.env, ""), f"the environment variable {secret.env}"
    else:
        path = secret.file or Path()
        place = f"the file {path}"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{place} cannot be read as text ({type(error).__name__}).") from None
    lines = tuple(line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    if not lines:
        raise UsageError(f"{place} is empty.")
    return lines
