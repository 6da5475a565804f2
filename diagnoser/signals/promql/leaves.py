"""One reading, one number: the leaves of a tree."""

from __future__ import annotations

from dataclasses import dataclass

from diagnoser.signals.promql.protocol import Ask, Dialect


@dataclass(frozen=True, slots=True)
class Gauge(Ask):
    """A reading now."""

    name: str

    def text(self, dialect: Dialect) -> str | None:
        return dialect.gauge(self.name)

    def plain(self, dialect: Dialect) -> str | Ask:
        return self.name


@dataclass(frozen=True, slots=True)
class Grew(Ask):
    """Increase of a counter over the window."""

    name: str

    def text(self, dialect: Dialect) -> str | None:
        return dialect.grew(self.name)


@dataclass(frozen=True, slots=True)
class Stepped(Ask):
    """Increase of a counter since the page before; inside Over only."""

    name: str

    def text(self, dialect: Dialect) -> str | None:
        return dialect.stepped(self.name)


@dataclass(frozen=True, slots=True)
class Recently(Ask):
    """Increase of a counter over the last 1/`part` of the window, where the expression is evaluated."""

    name: str
    part: int

    def text(self, dialect: Dialect) -> str | None:
        return dialect.recently(self.name, max(dialect.window_seconds / self.part, 2 * dialect.step_seconds))


@dataclass(frozen=True, slots=True)
class Lately(Ask):
    """A range function of a reading over the last `param` seconds, or over the whole window ("")."""

    function: str
    name: str
    param: str = ""

    def text(self, dialect: Dialect) -> str | None:
        return dialect.lately(self.function, self.name, dialect.param(self.param) if self.param else 0.0)


@dataclass(frozen=True, slots=True)
class Observed(Ask):
    """Growth of a histogram's sum or count; `ever`: since the start; `before`: from then to the window's first page."""

    name: str
    part: str
    ever: bool = False
    before: bool = False

    def text(self, dialect: Dialect) -> str | None:
        return dialect.observed(self.name, self.part, ever=self.ever, before=self.before)


@dataclass(frozen=True, slots=True)
class Edge(Ask):
    """Edge of the bucket that a quantile lies in; "top" is the last finite edge there is, whatever was observed."""

    name: str
    q: float
    side: str
    ever: bool = False

    def text(self, dialect: Dialect) -> str | None:
        return dialect.edge(self.name, self.q, self.side, ever=self.ever)


@dataclass(frozen=True, slots=True)
class Label(Ask):
    """A number from a label of the configuration series."""

    name: str

    def text(self, dialect: Dialect) -> str | None:
        return dialect.outside().label(self.name)


@dataclass(frozen=True, slots=True)
class Labelled(Ask):
    """1 for ranks whose configuration series has a label of that value."""

    name: str
    value: str

    def text(self, dialect: Dialect) -> str | None:
        return dialect.outside().labelled(self.name, self.value)


@dataclass(frozen=True, slots=True)
class Trait(Ask):
    """A number of the family, 0 where it says nothing."""

    name: str

    def text(self, dialect: Dialect) -> str | None:
        return dialect.constant(dialect.trait(self.name) or 0.0)


@dataclass(frozen=True, slots=True)
class Number(Ask):
    """A constant."""

    value: float

    def text(self, dialect: Dialect) -> str | None:
        return dialect.constant(self.value)


class Told(Ask):
    """A fact that the user gave; the first of several names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def text(self, dialect: Dialect) -> str | None:
        found = next((v for name in self.names if (v := dialect.fact(name)) is not None), None)
        return None if found is None else dialect.constant(found)


@dataclass(frozen=True, slots=True)
class IfTold(Ask):
    """One or the other, by whether the user gave a fact."""

    fact: str
    on: Ask
    off: Ask

    def text(self, dialect: Dialect) -> str | None:
        return (self.off if dialect.fact(self.fact) is None else self.on).text(dialect)


@dataclass(frozen=True, slots=True)
class Of(Ask):
    """Another signal, over the whole window."""

    name: str

    def text(self, dialect: Dialect) -> str | None:
        return dialect.outside().signal(self.name)


@dataclass(frozen=True, slots=True)
class Pages(Ask):
    """Of the page as such."""

    what: str

    def text(self, dialect: Dialect) -> str | None:
        return dialect.pages(self.what)


@dataclass(frozen=True, slots=True)
class Ranks(Ask):
    """How many ranks the target has."""

    def text(self, dialect: Dialect) -> str | None:
        return dialect.outside().ranks()


@dataclass(frozen=True, slots=True)
class Cannot(Ask):
    """PromQL cannot say it, and why."""

    reason: str

    def text(self, dialect: Dialect) -> str | None:
        return None
