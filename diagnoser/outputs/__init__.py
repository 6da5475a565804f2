"""Outputs: diagnoses -> text for people and programs. One file an output, found by its OUTPUT."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from diagnoser.outputs.base import Output

ORDER = ("text", "json", "jsonl", "markdown")
"""How the shipped ones are listed; others follow by name."""


@cache
def outputs() -> Mapping[str, Output]:
    """Every output of the package by name: a module is an output if it has OUTPUT."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = (import_module(f"{__name__}.{name}") for name in names)
    found = {module.OUTPUT.name: module.OUTPUT for module in modules if hasattr(module, "OUTPUT")}
    known = [name for name in ORDER if name in found]
    return {name: found[name] for name in (*known, *(name for name in found if name not in known))}
