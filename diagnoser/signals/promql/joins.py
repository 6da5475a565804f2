"""Several nodes as one: arithmetic, the first that is there, sums of what is there, one of two by the family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from diagnoser.signals.promql.protocol import Ask, Dialect


class Expr(Ask):
    """PromQL with {names} for parts and thresholds: Expr("{a} / {b}", a=..., b=...). None if a part is."""

    def __init__(self, template: str, **parts: Ask) -> None:
        self.template, self.parts = template, parts

    def text(self, dialect: Dialect) -> str | None:
        found: dict[str, str] = {}
        for name, part in self.parts.items():
            text = part.text(dialect)
            if text is None:
                return None
            found[name] = text
        return "(" + self.template.format_map(_Params(found, dialect)) + ")"

    def looks_back(self, dialect: Dialect) -> int:
        return max((part.looks_back(dialect) for part in self.parts.values()), default=0)


class _Params(dict[str, str]):
    """Names that are no part are thresholds."""

    def __init__(self, found: Mapping[str, str], dialect: Dialect) -> None:
        super().__init__(found)
        self._dialect = dialect

    def __missing__(self, key: str) -> str:
        own = {"window_seconds": self._dialect.window_seconds, "step_seconds": self._dialect.step_seconds}
        return f"{own[key] if key in own else self._dialect.param(key):.10g}"


class First(Ask):
    """The first of several that a rank has."""

    def __init__(self, *choices: Ask) -> None:
        self.choices = choices

    def text(self, dialect: Dialect) -> str | None:
        found = [text for choice in self.choices if (text := choice.text(dialect)) is not None]
        return None if not found else found[0] if len(found) == 1 else "(" + " or ".join(found) + ")"

    def looks_back(self, dialect: Dialect) -> int:
        return max(choice.looks_back(dialect) for choice in self.choices)

    def plain(self, dialect: Dialect) -> str | Ask:
        able = [choice for choice in self.choices if choice.text(dialect.inside()) is not None]
        return able[0].plain(dialect) if len(able) == 1 else self


class Sum(Ask):
    """One number plus others, each 0 where a rank lacks it. Unknown without the first."""

    def __init__(self, first: Ask, *others: Ask) -> None:
        self.first, self.others = first, others

    def text(self, dialect: Dialect) -> str | None:
        first = self.first.text(dialect)
        found = [text for other in self.others if (text := other.text(dialect)) is not None]
        if first is None or not found:
            return first
        return "(" + " + ".join([first, *(f"({text} or {dialect.constant(0)})" for text in found)]) + ")"


class AnySum(Ask):
    """Several numbers, each 0 where a rank lacks it. Unknown if a rank has none of them."""

    def __init__(self, *parts: Ask) -> None:
        self.parts = parts

    def text(self, dialect: Dialect) -> str | None:
        found = [text for part in self.parts if (text := part.text(dialect)) is not None]
        if len(found) < 2:
            return found[0] if found else None
        zeros = " + ".join(f"({text} or {dialect.constant(0)})" for text in found)
        return f"(({zeros}) and ({' or '.join(found)}))"


@dataclass(frozen=True, slots=True)
class Unless(Ask):
    """One or the other, by a trait of the family (0 or missing: `off`)."""

    trait: str
    on: Ask
    off: Ask

    def choice(self, dialect: Dialect) -> Ask:
        """What counts for the family."""
        return self.on if dialect.trait(self.trait) else self.off

    def text(self, dialect: Dialect) -> str | None:
        return self.choice(dialect).text(dialect)

    def plain(self, dialect: Dialect) -> str | Ask:
        return self.choice(dialect).plain(dialect)
