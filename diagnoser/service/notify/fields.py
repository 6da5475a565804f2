"""Kinds of values in the sections `notify:` and `webhook:`: rates, URLs, times, and secrets that are only named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from diagnoser.service.config_base import Strict

SILENCE_LABELS = "target, rank, model, family, bottleneck, mode, severity, or a label of the target"

_RATE = re.compile(r"([0-9]+)/(s|m|h|d)")
_PER = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Rate(Strict):
    """So many messages in so many seconds."""

    count: Annotated[int, Field(gt=0)]
    seconds: Annotated[float, Field(gt=0)]


def _rate(value: Any) -> Any:
    if isinstance(value, Rate):
        return value
    match = _RATE.fullmatch(value.replace(" ", "")) if isinstance(value, str) else None
    if match is None or not int(match[1]):
        raise ValueError("write a rate such as 20/h, 5/m or 100/d")
    return Rate(count=int(match[1]), seconds=_PER[match[2]])


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/@]+(:[0-9]+)?(/\S*)?", value):
        raise ValueError("write http://HOST[:PORT][/PATH] or https://..., without a name or password in it")
    return value.rstrip("/")


def _moment(value: Any) -> float | None:
    """Unix seconds of ISO 8601, a YAML timestamp, or seconds. Without a zone it is UTC."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise ValueError("write a time such as 2026-11-29T22:00:00Z, or unix seconds") from None
    return (found if found.tzinfo else datetime.fromisoformat(f"{found.isoformat()}+00:00")).timestamp()


def _match(value: dict[str, str]) -> dict[str, str]:
    if not value:
        raise ValueError(f'say what is silenced ({SILENCE_LABELS}); {{target: "*"}} is everything')
    return value


RateText = Annotated[Rate, BeforeValidator(_rate)]
Url = Annotated[str, AfterValidator(_url)]
Moment = Annotated[float | None, BeforeValidator(_moment)]
Match = Annotated[dict[str, str], AfterValidator(_match)]


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret is named, never written down: a file that holds it, or a variable of the environment."""

    file: Path | None
    env: str | None


def named_secret(model: Strict, name: str, needed: bool = False) -> Secret | None:
    """What `{name}_file` or `{name}_env` of the model name; ValueError if that is both, or none although `needed`."""
    file, env = getattr(model, f"{name}_file"), getattr(model, f"{name}_env")
    if file is not None and env is not None:
        raise ValueError(f"give {name}_file or {name}_env, not both")
    if needed and file is None and env is None:
        raise ValueError(f"give {name}_file (a path) or {name}_env (a variable of the environment)")
    return None if file is None and env is None else Secret(file, env)
