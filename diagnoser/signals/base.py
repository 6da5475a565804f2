"""What a signal is.

A file diagnoser/signals/<topic>.py with SIGNALS (window) or INTERVALS (between two pages) is found by itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from diagnoser.signals.promql import Ask, Cannot
from diagnoser.signals.view import Result, View

NOT_SAID = Cannot("its PromQL is not written yet")
Params = Mapping[str, "float | tuple[float, ...]"]
"""The thresholds of rules/thresholds.yaml that signals need as parameters, by name."""


def scalar(params: Params, name: str) -> float:
    """A parameter that is one number."""
    value = params[name]
    return value[0] if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Signal:
    """One number over a window: name, unit, what it means and how it is computed, here and by a metrics server."""

    name: str
    unit: str
    meaning: str
    compute: Callable[[View, Params], Result]
    promql: Ask = NOT_SAID


@dataclass(frozen=True, slots=True)
class IntervalSignal:
    """One number for each interval: `compute(view, i)` is about the time between snapshots i and i+1;
    None if unknown.
    """

    name: str
    unit: str
    meaning: str
    compute: Callable[[View, int], float | None]
    promql: Ask = NOT_SAID


def _modules() -> list[ModuleType]:
    package = importlib.import_module("diagnoser.signals")
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__))
    return [
        importlib.import_module(f"diagnoser.signals.{name}")
        for name in names
        if name not in ("base", "promql", "view", "requests")
    ]


@cache
def signals() -> tuple[Signal, ...]:
    """All window signals, in the order of their modules."""
    return tuple(s for module in _modules() for s in getattr(module, "SIGNALS", ()))


@cache
def intervals() -> tuple[IntervalSignal, ...]:
    """All interval signals."""
    return tuple(s for module in _modules() for s in getattr(module, "INTERVALS", ()))
