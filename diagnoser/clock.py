"""A moment in the past, in the zone that whoever types it means."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from diagnoser.errors import UsageError

_FORMS = "03:12, '2026-11-29 03:12', 2026-11-29T03:12:00+01:00 or unix seconds"
_DAY_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_LOCAL = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)")


def zone_of(name: str) -> ZoneInfo:
    """The zone "Europe/Berlin" or "UTC". UsageError for what the system does not know."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"--tz {name!r}: this system knows no such zone; write UTC or Europe/Berlin.") from None


def moment(text: str, zone: ZoneInfo, now: float) -> float:
    """Unix seconds of a time that is past at `now`: "03:12" is the last time it was that late in `zone`.

    A time with a zone of its own ("...Z", "...+01:00") means that one. UsageError for what is no time, lies ahead, or
    came twice or never because the clocks were set.
    """
    text = text.strip()
    at = _read(text, zone, now)
    if at > now + 1:
        raise UsageError(f"--at {text}: {shown(at, zone)} lies ahead; it is {shown(now, zone)}.")
    return at


def shown(at: float, zone: ZoneInfo) -> str:
    """A moment with its zone, and in UTC where that is another: "2026-11-29 03:12:00 CET (02:12:00 UTC)"."""
    local = datetime.fromtimestamp(at, zone)
    own = f"{local:%Y-%m-%d %H:%M:%S %Z}"
    return own if local.utcoffset() == timedelta(0) else f"{own} ({datetime.fromtimestamp(at, UTC):%H:%M:%S} UTC)"


def _read(text: str, zone: ZoneInfo, now: float) -> float:
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return float(text)
    try:
        if _DAY_TIME.fullmatch(text):
            today = datetime.fromtimestamp(now, zone).date()
            at = _local(f"{today} {text}", text, zone)
            return at if at <= now else _local(f"{today - timedelta(days=1)} {text}", text, zone)
        if _LOCAL.fullmatch(text):
            return _local(text, text, zone)
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        raise UsageError(f"--at {text!r} is no time: write {_FORMS}.") from None
    if found.tzinfo is None:
        raise UsageError(f"--at {text!r} is no time with a clock: write {_FORMS}.")
    return found.timestamp()


def _local(text: str, typed: str, zone: ZoneInfo) -> float:
    """Wall-clock time in the zone, if it happened exactly once."""
    match = _LOCAL.fullmatch(text)
    assert match is not None
    hour, rest = match[2].split(":", 1)
    wall = datetime.fromisoformat(f"{match[1]}T{int(hour):02d}:{rest}").replace(tzinfo=zone)
    if wall.utcoffset() != wall.replace(fold=1).utcoffset():
        raise UsageError(f"--at {typed}: the clocks of {zone.key} were set then; write it with +01:00 or as UTC (Z).")
    return wall.timestamp()
