"""Numbers as words with their unit: the same in every sentence, table and page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping


def percent(value: float) -> str:
    """0.816 -> "82 %"; never 0 % or 100 % unless exact to a tenth."""
    shown = value * 100
    if 0.05 < shown < 1 or 99 < shown < 99.95:
        return f"{shown:.1f} %"
    return f"{shown:.0f} %"


def count(value: float) -> str:
    """Whole numbers without decimals, thousands grouped; small fractions with two digits."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.2g}"


def seconds(value: float) -> str:
    """40 -> "40 s", 0.037 -> "0.037 s", infinity stays a word."""
    return "more" if value == float("inf") else f"{value:,.3g} s"


def size(value: float) -> str:
    """Bytes in binary units."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(value) >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:,.3g} {units[0]}"


def rate(value: float) -> str:
    """Three significant digits, without powers of ten."""
    if 0 < abs(value) < 0.001:
        return "< 0.001" if value > 0 else "> -0.001"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


FORMATS: Mapping[str, Callable[[float], str]] = {
    "percent": percent,
    "count": count,
    "seconds": seconds,
    "bytes": size,
    "rate": rate,
}


def unit_format(unit: str) -> str:
    """The format that fits a signal's unit."""
    return {"ratio": "percent", "seconds": "seconds", "bytes": "bytes"}.get(unit, "rate" if "/s" in unit else "count")


def quantity(value: float, unit: str) -> str:
    """A signal's value with its unit in words: "82 %", "31 pages", "1.4 requests/s", "yes"."""
    if unit == "bool":
        return "yes" if value else "no"
    shown = FORMATS[unit_format(unit)](value)
    return shown if unit in ("ratio", "seconds", "bytes", "") else f"{shown} {unit}"


def duration(value: float) -> str:
    """90 -> "90 s", 300 -> "5 min", 5400 -> "1.5 h"."""
    if value < 120:
        return f"{value:.0f} s" if value >= 9.5 else f"{value:.2g} s" if value >= 1 else f"{value * 1000:.3g} ms"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"

IMPOSSIBLE_RATIO = 1.02
"""Above this a usage is not one engine's: summed over ranks, or a percentage."""
