"""What every model of the configuration is made of: strict objects, durations, sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from diagnoser import config
from diagnoser.errors import UsageError

_UNITS = {"b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([a-z]*)")


class Strict(BaseModel):
    """A part of the configuration: unknown keys are errors, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=True)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("write a duration such as 30s, 5m or 7d")
    try:
        return config.duration(str(value))
    except UsageError as error:
        raise ValueError(str(error)) from None


def _bytes(value: Any) -> int:
    match = _SIZE.fullmatch(str(value).strip().lower())
    factor = None if match is None else _UNITS.get(match[2] or "b")
    if isinstance(value, bool) or match is None or factor is None:
        raise ValueError(f"{value!r} is no size: write 512MiB, 1GiB or a number of bytes")
    return int(float(match[1]) * factor)


Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A duration: "30s", "5m", "7d", or seconds."""
Bytes = Annotated[int, BeforeValidator(_bytes)]
"""A size: "512MiB", "1GiB", or bytes."""


def _beside(value: Path, info: ValidationInfo) -> Path:
    folder = (info.context or {}).get("folder")
    return value.expanduser() if folder is None else Path(folder) / value.expanduser()


FilePath = Annotated[Path, AfterValidator(_beside)]
"""A path; a relative one is relative to the configuration file."""


def secret_of(path: Path) -> str:
    """The secret in that file, without blanks around it. UsageError, which never repeats it, if there is none."""
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"{path}: the secret in it cannot be read ({why})") from None
    if not found:
        raise UsageError(f"{path}: there is no secret in it, it is empty")
    return found
