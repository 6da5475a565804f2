"""Shows on stderr that sampling goes on: a bar on a terminal, one line elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from diagnoser.commands.base import say
from diagnoser.commands.setup import colourful
from diagnoser.units import duration

if TYPE_CHECKING:
    from diagnoser.live import Engine, OnPoll


@contextmanager
def progress(what: str, targets: int, seconds: float, interval: float) -> Iterator[OnPoll]:
    """A callback for every poll. `seconds` is the time it takes, `interval` that between two pages."""
    if not sys.stderr.isatty():
        who = "1 target" if targets == 1 else f"{targets} targets"
        say(f"{what} {who} for {duration(seconds)}, a page every {duration(interval)} ...")
        yield lambda engine: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, no_color=not colourful(sys.stderr), highlight=False, markup=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(24),
        TextColumn("{task.fields[state]}", markup=False),
    )
    with Progress(*columns, TimeRemainingColumn(compact=True), console=console, transient=True) as bar:
        turns = seconds / interval + 1
        task = bar.add_task(what, total=turns * targets, state="")
        states: dict[str, Engine] = {}

        def on_poll(engine: Engine) -> None:
            states[engine.name] = engine
            bar.update(task, advance=1, state=_state(list(states.values()), targets))

        yield on_poll


def _state(engines: list[Engine], targets: int) -> str:
    pages = sum(engine.pages for engine in engines)
    failed = sum(engine.polls for engine in engines) - pages
    who = f", {targets} targets" if targets > 1 else ""
    return f"{pages} pages{who}" + (f", {failed} failed" if failed else "")
