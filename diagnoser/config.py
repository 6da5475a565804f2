"""What a person types, as values: durations, moments, headers. A mistake is a sentence with the right form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from diagnoser.errors import UsageError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}
_DURATION = re.compile(r"([0-9]*\.?[0-9]+) *(ms|s|min|m|h|d|)")


def duration(text: str) -> float:
    """Seconds in "30s", "2m", "1.5h", "7d", "500ms" or "30"."""
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds < 1e9:
        raise UsageError(f"{text!r} is no duration: write 30s, 2m, 500ms or a number of seconds above 0")
    return seconds


def moment(text: str, first: float, last: float) -> float:
    """Unix seconds in "1795976065", "+90s" (after the first page), "02:14:05" (UTC) or "2026-11-29T02:14:05Z"."""
    text = text.strip()
    if text.startswith("+"):
        at = first + duration(text[1:])
    elif re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        at = float(text)
    elif match := re.fullmatch(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?Z?", text):
        at = _on_the_day(first, int(match[1]), int(match[2]), int(match[3] or 0))
    else:
        at = _iso(text)
    if not first <= at <= last + 1:
        span = f"{_clock(first)} to {_clock(last)}"
        raise UsageError(
            f"--at {text}: the recording goes from {span} (UTC); give a time inside, or +30s after its start."
        )
    return at


def _on_the_day(first: float, hour: int, minute: int, second: int) -> float:
    """That time of day, at or after the first page."""
    start = datetime.fromtimestamp(first, UTC)
    wanted = start.replace(hour=hour % 24, minute=minute % 60, second=second % 60, microsecond=0)
    found = wanted if wanted >= start.replace(microsecond=0) else wanted + timedelta(days=1)
    return max(found.timestamp(), first)


def _iso(text: str) -> float:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(
            f"--at {text!r} is no time: write 02:14:05, 2026-11-29T02:14:05Z, +90s or unix seconds."
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def headers_of(flags: Sequence[str], files: Sequence[str]) -> dict[str, str]:
    """Headers of "Name: value" flags and of files with one a line. Errors never repeat a value: it may be a secret."""
    lines = [("--header", flag) for flag in flags]
    for path in files:
        try:
            content = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"--header-file {path}: cannot be read as text.") from None
        lines += [(f"--header-file {path}", line) for line in content.splitlines() if line.strip() and line[0] != "#"]
    found = {}
    for origin, line in lines:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name.strip()) or not value.strip():
            raise UsageError(f"{origin}: write 'Name: value', for example 'Authorization: Bearer TOKEN'.")
        found[name.strip()] = value.strip()
    return found
