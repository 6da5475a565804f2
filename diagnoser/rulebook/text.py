"""Sentences of the rule files: "{waiting_max_requests:count} requests wait", filled with measured values and units."""

from __future__ import annotations

import string
from collections.abc import Mapping
from functools import lru_cache

from diagnoser.model import SignalValue
from diagnoser.units import FORMATS, unit_format

UNKNOWN = "?"


@lru_cache(4096)
def _alternatives(template: str) -> tuple[tuple[tuple[str, str | None, str], ...], ...]:
    """Each alternative as (text, name of the number after it, its format). A fleet fills the same few for ever."""
    return tuple(
        tuple((literal, name, spec or "") for literal, name, spec, _ in string.Formatter().parse(one.strip()))
        for one in template.split("||")
    )


def fill(template: str, values: Mapping[str, SignalValue], words: Mapping[str, str] | None = None) -> tuple[str, bool]:
    """The sentence, and whether every value in it was known (an unknown one reads "?").

    "A || B" offers B where a number of A is missing; the first whole alternative is taken, else the last.
    """
    text = ""
    for parts in _alternatives(template):
        shown = [None if name is None else _shown(name, spec, values, words or {}) for _, name, spec in parts]
        text = "".join(literal + (value or "") for (literal, _, _), value in zip(parts, shown, strict=True))
        if UNKNOWN not in shown:
            return text, True
    return text, False


def _shown(name: str, spec: str, values: Mapping[str, SignalValue], words: Mapping[str, str]) -> str:
    if name in words:
        return words[name]
    value = values.get(name)
    if value is None or value.value is None:
        return UNKNOWN
    return FORMATS[spec or unit_format(value.unit)](value.value)


def fields(template: str) -> list[tuple[str, str]]:
    """(name, format) of every placeholder, for the linter."""
    return [(name, spec or "") for _, name, spec, _ in string.Formatter().parse(template) if name is not None]
