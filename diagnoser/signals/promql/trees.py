"""Usual trees, and walking through one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diagnoser.signals.promql.joins import Expr, First
from diagnoser.signals.promql.leaves import Number, Observed, Of
from diagnoser.signals.promql.protocol import Ask


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
