"""Engine adapters: one scraped page in an engine's dialect -> Snapshots in our vocabulary (base.py)."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from diagnoser.engines.base import EngineAdapter


@cache
def adapters() -> tuple[EngineAdapter, ...]:
    """Every adapter of the package, in order of module name: a module is an engine if it has ADAPTER."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = (import_module(f"{__name__}.{name}") for name in names)
    return tuple(module.ADAPTER for module in modules if hasattr(module, "ADAPTER"))
