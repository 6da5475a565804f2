"""What Alertmanager's webhook sends."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _rfc3339(value: object) -> object:
    """A number would be taken for unix seconds."""
    if isinstance(value, datetime) or value is None or re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", str(value)):
        return value
    raise ValueError("must be a time as RFC 3339 writes it")


Rfc3339 = BeforeValidator(_rfc3339)


def _whole(value: object) -> object:
    """To JSON Schema 171.0 is an integer; true and "171" are none."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = BeforeValidator(_whole)


class _Foreign(BaseModel):
    """Alertmanager may add fields."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Alert(_Foreign):
    """One alert. An `endsAt` in the year 1 means that it still fires."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = Field(default_factory=dict)
    starts_at: Annotated[datetime, Rfc3339, Field(alias="startsAt")]
    ends_at: Annotated[datetime | None, Rfc3339, Field(alias="endsAt")] = None
    generator_url: Annotated[str, Field(alias="generatorURL")] = ""
    fingerprint: str = ""


class AlertmanagerPayload(_Foreign):
    """What Alertmanager's webhook_config sends, version 4."""

    version: Literal["4"]
    group_key: Annotated[str, Field(alias="groupKey")]
    status: Literal["firing", "resolved"]
    receiver: str = ""
    truncated_alerts: Annotated[int, Whole, Field(alias="truncatedAlerts", ge=0, strict=True)] = 0
    external_url: Annotated[str, Field(alias="externalURL")] = ""
    alerts: list[Alert]
