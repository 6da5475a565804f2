"""Byte sizes as people write and read them."""

from __future__ import annotations

import re

from diagnoser.errors import CapacityError

DECIMAL = {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)}
BINARY = {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)}
UNITS = {"": 1, "b": 1, **DECIMAL, **BINARY}
SHAPE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")
COUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKmM]?)\s*")


def parse_bytes(text: str) -> int:
    """Bytes of "60GiB" (1024^3), "60GB" (1000^3) or "64424509440". Raises CapacityError."""
    match = SHAPE.fullmatch(text)
    unit = UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise CapacityError(f"{text!r} is no size: write 60GiB, 60GB or bytes")
    return int(float(match[1]) * unit)


def parse_tokens(text: str) -> int:
    """Tokens of "32K" (32,768), "1M" (1,048,576) or "32000". Raises CapacityError."""
    match = COUNT.fullmatch(text)
    if match is None:
        raise CapacityError(f"{text!r} is no number of tokens: write 32768 or 32K")
    return int(float(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2].lower()])


def human(size: float) -> str:
    """Bytes in binary units, with up to two decimals: "320 KiB"."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:,.2f}".rstrip("0").rstrip(".") + f" {units[0]}"
