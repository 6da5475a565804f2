"""`diagnose watch URL [URL ...]`: all engines in one table that stays current; elsewhere a line per change."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from diagnoser.commands.base import L2_HELP, Command, add_facts, add_http, add_l2, add_window, duration
from diagnoser.commands.live import Interruptible, check_addresses, plan_of

if TYPE_CHECKING:
    from rich.text import Text

    from diagnoser.live import Plan, Sampler
    from diagnoser.model import Diagnosis, Window
    from diagnoser.outputs.base import Look
    from diagnoser.rulebook.rules import Rulebook

Show = Callable[[Sequence["Diagnosis"], Sequence["Window"]], None]


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("urls", nargs="+", metavar="URL", help="host:port, or a URL; without a path /metrics is read")
    add_window(parser)
    parser.add_argument(
        "--refresh", type=duration, default=2.0, metavar="2s", help="time between two verdicts (default 2s)"
    )
    parser.add_argument(
        "--duration", type=duration, default=None, metavar="10m", help="stop after this time (default: at Ctrl-C)"
    )
    add_l2(parser, L2_HELP, "[ENGINE=]URL")
    add_http(parser)
    add_facts(parser)


def run(args: argparse.Namespace) -> int:
    """Watch until Ctrl-C. The exit code is that of the last verdicts."""
    check_addresses(args.urls)
    import asyncio

    from diagnoser.commands import setup
    from diagnoser.outputs.base import exit_code, urgency

    book, plan = setup.rulebook(args.rules), plan_of(args)
    show = _Table(setup.look(), args) if sys.stdout.isatty() else _Changes()
    with show:
        last = asyncio.run(_watch(args, plan, book, show.show))
    return exit_code(map(urgency, last))


async def _watch(args: argparse.Namespace, plan: Plan, book: Rulebook, show: Show) -> Sequence[Diagnosis]:
    import asyncio

    from diagnoser.live import sampler

    async with sampler(args.urls, plan) as found:
        with Interruptible(found):
            polling = asyncio.create_task(found.run(forever=True))
            evaluating = asyncio.create_task(_evaluate(found, args, book, show))
            await asyncio.wait([polling, evaluating], return_when=asyncio.FIRST_COMPLETED)
            found.stop.set()
            await polling
            return await evaluating


async def _evaluate(found: Sampler, args: argparse.Namespace, book: Rulebook, show: Show) -> Sequence[Diagnosis]:
    import asyncio
    from contextlib import suppress

    from diagnoser.pipeline import diagnose

    loop = asyncio.get_running_loop()
    last: Sequence[Diagnosis] = ()
    ends = loop.time() + (args.duration or float("inf"))
    while not found.stop.is_set() and loop.time() < ends:
        with suppress(TimeoutError):
            await asyncio.wait_for(found.stop.wait(), max(0.0, min(args.refresh, ends - loop.time())))
        windows = found.windows()
        if windows:
            last = diagnose(windows, book)
            show(last, windows)
    return last


class _Changes:
    """For logs and pipes: a line when an engine's verdict changes."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], str] = {}

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(self, *_: object) -> None:
        """Nothing to put away."""

    def show(self, found: Sequence[Diagnosis], windows: Sequence[Window]) -> None:
        """Prints what changed."""
        from diagnoser.commands import setup
        from diagnoser.outputs.words import change

        for diagnosis in found:
            key = (diagnosis.engine.target, diagnosis.engine.rank)
            if self._last.get(key) != diagnosis.verdict.headline:
                self._last[key] = diagnosis.verdict.headline
                setup.write(change(diagnosis) + "\n")


class _Table:
    """For a terminal: one table that is drawn anew."""

    def __init__(self, look: Look, args: argparse.Namespace) -> None:
        from rich.console import Console
        from rich.live import Live

        self._look, self._args = look, args
        console = Console(no_color=not look.colour, highlight=False, markup=False, emoji=False)
        self._live = Live(console=console, auto_refresh=False, screen=False, transient=False)

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, found: Sequence[Diagnosis], windows: Sequence[Window]) -> None:
        """Draws the table."""
        from rich.console import Group

        self._live.update(Group(*self._lines(found, windows)), refresh=True)

    def _lines(self, found: Sequence[Diagnosis], windows: Sequence[Window]) -> list[Text]:
        from diagnoser.outputs.terminal.watching import watching

        ages = {
            (window.engine.target, window.engine.rank): window.end - window.snapshots[-1].at
            for window in windows
            if window.snapshots
        }
        return watching(found, ages, self._args.window, self._look)


COMMAND = Command(
    name="watch",
    summary="Keeps a table of live engines current, a line a rank.",
    usage="URL [URL ...]",
    examples=(
        ("diagnose watch localhost:8000", "one engine, until Ctrl-C"),
        ("diagnose watch 10.0.3.7:8000 10.0.3.8:8000 --window 1m --refresh 5s", "several, calmer"),
        ("diagnose watch localhost:8000 >> changes.log", "without a terminal: a line per change"),
    ),
    options=options,
    run=run,
)
