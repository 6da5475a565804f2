"""Reading configuration out of labels and decoded JSON. Nothing here raises on any input."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from diagnoser.model import Fact

GIB = float(1 << 30)


def dig(data: object, *path: str) -> object:
    """The value at a path of mappings, None where it does not exist."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def items(data: object) -> Iterator[object]:
    """The elements of a JSON list, nothing for any other value."""
    if isinstance(data, list):
        yield from data


def value_of(raw: object) -> float | str | bool | None:
    """A configuration value: number, truth value or text; None for what is unset ("None", "", null, a structure)."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, int | float):
        try:
            number = float(raw)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    return _from_text(raw.strip()) if isinstance(raw, str) else None


def _from_text(text: str) -> float | str | bool | None:
    if text in ("", "None", "null"):
        return None
    if text in ("True", "False", "true", "false"):
        return text.lower() == "true"
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else None


def text_fact(name: str, raw: object, origin: str) -> Iterator[Fact]:
    """A fact that stays text, as a version or a model name."""
    if isinstance(raw, str) and raw.strip():
        yield Fact(name, raw.strip(), origin)


def pick(data: object, names: Iterable[tuple[str, str]], origin: str) -> Iterator[Fact]:
    """Facts from a mapping: (key in the mapping, our name) pairs."""
    for key, name in names:
        value = value_of(dig(data, key))
        if value is not None:
            yield Fact(name, value, origin)


def number(facts: Mapping[str, Fact], name: str) -> float | None:
    """A fact as a number, None where it is unknown or none."""
    fact = facts.get(name)
    if fact is None or isinstance(fact.value, bool | str):
        return None
    return float(fact.value)


def text(facts: Mapping[str, Fact], name: str) -> str | None:
    """A fact as text, None where it is unknown."""
    fact = facts.get(name)
    return None if fact is None else str(fact.value)


def flag(facts: Mapping[str, Fact], name: str) -> bool | None:
    """A fact as a truth value, None where it is unknown or none."""
    fact = facts.get(name)
    return fact.value if fact is not None and isinstance(fact.value, bool) else None
