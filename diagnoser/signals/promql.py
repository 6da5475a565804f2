"""What a metrics server is asked for a signal: small expression trees over readings, written beside the Python.

A tree knows readings (engines/base.py), not metric names: a dialect (diagnoser/promql) spells it for one engine family.
Rendering gives None where the family, or PromQL itself, cannot say it; the signal is unknown then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Dialect(Protocol):
    """Spells readings for one family. Every text is one vector, an element an engine rank, with the same labels."""

    def gauge(self, name: str) -> str | None:
        """A reading now: at the window's end, or inside a subquery at its step."""

    def over(self, how: str, name: str) -> str | None:
        """`how`_over_time of a gauge over the window."""

    def grew(self, name: str) -> str | None:
        """Increase of a counter over the window."""

    def stepped(self, name: str) -> str | None:
        """Increase of a counter since the page before; only inside a subquery."""

    def labelled(self, name: str, value: str) -> str | None:
        """1 for every rank whose configuration series has that label."""

    def total(self, names: Sequence[str], ago: float = 0.0) -> str | None:
        """Sum over several gauges or counters, those that a rank has, now or `ago` seconds before."""

    def only(self, names: Sequence[str]) -> str | None:
        """The one of these readings that the family has as a plain gauge, None if there are several."""

    def lately(self, function: str, name: str, seconds: float) -> str | None:
        """A range function over the last `seconds`, or over the whole window (0)."""

    def recently(self, name: str, seconds: float) -> str | None:
        """Increase of a counter over the last `seconds` before the place of evaluation."""

    def ranks(self) -> str:
        """How many ranks the target has."""

    def observed(self, name: str, part: str, *, ever: bool = False, before: bool = False) -> str | None:
        """Growth of a histogram's "sum" or "count" over the window; `ever`: since the start; `before`: from the start
        to the first page of the window.
        """

    def edge(self, name: str, q: float, side: str, *, ever: bool = False) -> str | None:
        """ "low" or "high" edge of the bucket of a quantile."""

    def label(self, name: str) -> str | None:
        """A number that the engine writes into a label of its configuration series."""

    def trait(self, name: str) -> float | None:
        """How the family behaves; None where it does not say."""

    def fact(self, name: str) -> float | None:
        """What the user told of the configuration."""

    def param(self, name: str) -> float:
        """A threshold."""

    def constant(self, value: float) -> str:
        """The same number for every rank."""

    def signal(self, name: str) -> str | None:
        """Another signal."""

    def pages(self, what: str) -> str | None:
        """Of the page as such: "count" in the window, "age" of the newest, "failed", "failed_at_end"."""

    def inside(self) -> Dialect:
        """The same, at the steps of a subquery."""

    def outside(self) -> Dialect:
        """The same, at the end of the whole window, also from inside a subquery."""

    def subquery(self, how: str, text: str, seconds: float = 0.0, ago: float = 0.0) -> str:
        """`how`_over_time of a text rendered inside, over the window or the `seconds` that end `ago` seconds before."""

    @property
    def window_seconds(self) -> float:
        """Length of the window."""

    @property
    def step_seconds(self) -> float:
        """Time between two pages."""


class Ask:
    """One node."""

    def text(self, dialect: Dialect) -> str | None:
        """PromQL, or None."""
        raise NotImplementedError

    def looks_back(self, dialect: Dialect) -> int:
        """How many steps before its own a value is about as well."""
        return 0


@dataclass(frozen=True, slots=True)
class Gauge(Ask):
    """A reading now."""

    name: str

    def text(self, dialect: Dialect) -> str | None:
        return dialect.gauge(self.name)


@dataclass(frozen=True, slots=True)
class Over(Ask):
    """min, max, avg, last, sum, count, stdvar of a gauge or of an expression, over the pages of the window."""

    how: str
    what: str | Ask

    def text(self, dialect: Dialect) -> str | None:
        what = self.what if isinstance(self.what, str) else plain(self.what, dialect)
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
class Lately(Ask):
    """A range function of a reading over the last `param` seconds, or over the whole window ("")."""

    function: str
    name: str
    param: str = ""

    def text(self, dialect: Dialect) -> str | None:
        return dialect.lately(self.function, self.name, dialect.param(self.param) if self.param else 0.0)


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


@dataclass(frozen=True, slots=True)
class Ranks(Ask):
    """How many ranks the target has."""

    def text(self, dialect: Dialect) -> str | None:
        return dialect.outside().ranks()


@dataclass(frozen=True, slots=True)
class Recently(Ask):
    """Increase of a counter over the last 1/`part` of the window, where the expression is evaluated."""

    name: str
    part: int

    def text(self, dialect: Dialect) -> str | None:
        return dialect.recently(self.name, max(dialect.window_seconds / self.part, 2 * dialect.step_seconds))


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
    """Edge of the bucket that a quantile lies in."""

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


@dataclass(frozen=True, slots=True)
class Cannot(Ask):
    """PromQL cannot say it, and why."""

    reason: str

    def text(self, dialect: Dialect) -> str | None:
        return None


def plain(what: Ask, dialect: Dialect) -> str | Ask:
    """The name of the reading if that is all the expression is for this family."""
    if isinstance(what, Gauge):
        return what.name
    if isinstance(what, Unless):
        return plain(what.choice(dialect), dialect)
    if isinstance(what, Total):
        return dialect.only(what.names) or what
    if isinstance(what, First):
        able = [choice for choice in what.choices if choice.text(dialect.inside()) is not None]
        return plain(able[0], dialect) if len(able) == 1 else what
    return what


def known(what: Ask) -> Ask:
    """1 where it is there, 0 where it is not."""
    return First(Expr("{x} * 0 + 1", x=what), Number(0.0))


def mean_of(name: str) -> Ask:
    """Mean of a histogram's observations in the window; nothing where nothing was observed."""
    return Expr("{s} / ({c} > 0)", s=Observed(name, "sum"), c=Observed(name, "count"))


def of_signals(what: Ask) -> tuple[str, ...]:
    """The other signals that an expression builds on."""
    if isinstance(what, Of):
        return (what.name,)
    found = [name for part in parts(what) for name in of_signals(part)]
    return tuple(dict.fromkeys(found))


def parts(what: Ask) -> Iterator[Ask]:
    """The nodes below a node, whatever it is."""
    names = [name for kind in type(what).__mro__ for name in getattr(kind, "__slots__", ())] or list(vars(what))
    for value in (getattr(what, name) for name in names):
        below = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else (value,)
        yield from (part for part in below if isinstance(part, Ask))
