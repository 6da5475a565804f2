"""Over the pages of the window, or a part of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from diagnoser.signals.promql.protocol import Ask, Dialect


@dataclass(frozen=True, slots=True)
class Over(Ask):
    """min, max, avg, last, sum, count, stdvar of a gauge or of an expression, over the pages of the window."""

    how: str
    what: str | Ask

    def text(self, dialect: Dialect) -> str | None:
        what = self.what if isinstance(self.what, str) else self.what.plain(dialect)
        if isinstance(what, str):
            return dialect.over(self.how, what)
        base = dialect.outside()
        inner = what.text(base.inside())
        return None if inner is None else base.subquery(self.how, inner)


@dataclass(frozen=True, slots=True)
class Third(Ask):
    """Mean over the first ("early") or the last ("late") third of the window."""

    which: str
    what: Ask

    def text(self, dialect: Dialect) -> str | None:
        base = dialect.outside()
        inner, third = self.what.text(base.inside()), dialect.window_seconds / 3
        return (
            None if inner is None else base.subquery("avg", inner, third, 2 * third if self.which == "early" else 0.0)
        )


@dataclass(frozen=True, slots=True)
class Start(Ask):
    """The value on the first page of the window."""

    what: Ask

    def text(self, dialect: Dialect) -> str | None:
        base, step = dialect.outside(), dialect.step_seconds
        inner = self.what.text(base.inside())
        return None if inner is None else base.subquery("last", inner, step, dialect.window_seconds - step)


@dataclass(frozen=True, slots=True)
class MaxLately(Ask):
    """Largest value of an expression over the last `param` seconds."""

    what: Ask
    param: str

    def text(self, dialect: Dialect) -> str | None:
        base = dialect.outside()
        inner = self.what.text(base.inside())
        return None if inner is None else base.subquery("max", inner, dialect.param(self.param))


class Total(Ask):
    """Sum of several gauges, those that a rank has; `earlier`: on the page before."""

    def __init__(self, *names: str, earlier: bool = False) -> None:
        self.names, self.earlier = names, earlier

    def text(self, dialect: Dialect) -> str | None:
        return dialect.total(self.names, dialect.step_seconds if self.earlier else 0.0)

    def plain(self, dialect: Dialect) -> str | Ask:
        return dialect.only(self.names) or self


class Quiet(Ask):
    """1 where none of these readings changed over `param` seconds, or since the page before (""), else 0."""

    def __init__(self, param: str, *names: str) -> None:
        self.param, self.names = param, names

    def text(self, dialect: Dialect) -> str | None:
        step = dialect.step_seconds
        # One step more than asked for: scrapes are not in step with the query, two looks may see the same page.
        ago = (math.ceil(dialect.param(self.param) / step - 1e-9) + 1) * step if self.param else 2 * step
        now, before = dialect.total(self.names), dialect.total(self.names, ago)
        return None if now is None or before is None else f"({now} == bool {before})"

    def looks_back(self, dialect: Dialect) -> int:
        return math.ceil(dialect.param(self.param) / dialect.step_seconds - 1e-9) if self.param else 0
