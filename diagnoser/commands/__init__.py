"""The sub-commands, one file each, imported when they are asked for."""

from __future__ import annotations

from importlib import import_module

from diagnoser.commands.base import Command

NAMES = (
    "replay",
    "record",
    "mock",
    "page",
    "demo",
    "watch",
    "serve",
    "config",
    "token",
    "what-if",
    "capacity",
    "explain",
    "rules",
)
"""In the order of the help; `live` is what runs without a name."""


def command(name: str) -> Command:
    """The command of that name."""
    found: Command = import_module(f"{__name__}.{name.replace('-', '')}").COMMAND
    return found
