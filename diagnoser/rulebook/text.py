"""Sentences of the rule files: "{waiting_max_requests:count} requests wait", filled with measured values and units."""

from __future__ import annotations

import string
from collections.abc import Mapping

from diagnoser.model import SignalValue
from diagnoser.units import FORMATS, unit_format


class _Filler(string.Formatter):
    def __init__(self, values: Mapping[str, SignalValue], words: Mapping[str, str]) -> None:
        self._values, self._words, self.incomplete = values, words, False

    def get_value(self, key: int | str, args: object, kwargs: object) -> object:
        name = str(key)
        if name in self._words:
            return self._words[name]
        return self._values.get(name)

    def format_field(self, value: object, format_spec: str) -> str:
        if isinstance(value, SignalValue) and value.value is not None:
            return FORMATS[format_spec or unit_format(value.unit)](value.value)
        if isinstance(value, str):
            return value
        self.incomplete = True
        return "?"


def fill(template: str, values: Mapping[str, SignalValue], words: Mapping[str, str] | None = None) -> tuple[str, bool]:
    """The sentence, and whether every value in it was known (an unknown one reads "?").

    "A || B" offers B where a number of A is missing; the first whole alternative is taken, else the last.
    """
    text = ""
    for alternative in template.split("||"):
        filler = _Filler(values, words or {})
        text = filler.vformat(alternative.strip(), (), {})
        if not filler.incomplete:
            return text, True
    return text, False


def fields(template: str) -> list[tuple[str, str]]:
    """(name, format) of every placeholder, for the linter."""
    return [(name, spec or "") for _, name, spec, _ in string.Formatter().parse(template) if name is not None]
