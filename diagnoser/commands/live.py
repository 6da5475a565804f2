"""`diagnose URL [URL ...]`: sample live engines, then the verdict and the checklist."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.commands.base import L2_HELP, Command, add_facts, add_http, add_l2, add_output, add_window
from diagnoser.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.live import Plan, Sampler
    from diagnoser.model import Window


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("urls", nargs="+", metavar="URL", help="host:port, or a URL; without a path /metrics is read")
    add_window(parser)
    add_l2(parser, L2_HELP, "[ENGINE=]URL")
    add_http(parser)
    add_facts(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Sample, diagnose, print."""
    check_addresses(args.urls)
    import asyncio

    from diagnoser.commands import setup
    from diagnoser.outputs.base import Report
    from diagnoser.pipeline import diagnose

    book, plan = setup.rulebook(args.rules), plan_of(args)
    windows, notes = asyncio.run(sampled(args.urls, plan, "sampling"))
    return setup.show(Report(diagnose(windows, book), notes), args)


def plan_of(args: argparse.Namespace) -> Plan:
    """The options as a plan."""
    from diagnoser import config
    from diagnoser.commands import setup
    from diagnoser.live import Plan

    if args.interval > args.window:
        raise UsageError(
            f"--interval {args.interval:g}s is longer than --window {args.window:g}s: no two pages would fall into it."
        )
    headers = config.headers_of(args.header, args.header_file)
    return Plan(args.window, args.interval, args.timeout, headers, setup.facts(args), l2=tuple(args.l2))


async def sampled(urls: Sequence[str], plan: Plan, what: str) -> tuple[tuple[Window, ...], tuple[str, ...]]:
    """The windows of all targets after one window, and what the reader should know about them."""
    from diagnoser.commands.progress import progress
    from diagnoser.live import sampler

    async with sampler(urls, plan) as found:
        seconds = plan.window / plan.speed
        with progress(what, len(found.engines), seconds, plan.interval / plan.speed) as on_poll, Interruptible(found):
            await found.run(on_poll)
        return found.windows(), tuple(_notes(found, plan))


def _notes(found: Sampler, plan: Plan) -> list[str]:
    from diagnoser.units import duration

    notes = []
    if found.stop.is_set():
        ends = [(e.first_at, e.last.at) for e in found.engines if e.first_at is not None and e.last is not None]
        seconds = max((last - first for first, last in ends), default=0.0)
        so_far = f"{duration(max(seconds, 0.1))} of {duration(plan.window)}"
        notes.append(f"interrupted after {so_far}: this is what was sampled so far.")
    elif all(engine.pages == 0 for engine in found.engines):
        notes.append("sampling ended early: no target gave a page.")
    return notes


class Interruptible:
    """Ctrl-C ends the sampling instead of the command; pressed again it ends the command."""

    def __init__(self, found: Sampler) -> None:
        self._found = found

    def __enter__(self) -> None:
        import asyncio
        import signal

        # Not in another thread, and not on every system: Ctrl-C then ends the command at once.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._stop)

    def _stop(self) -> None:
        self.__exit__()
        self._found.stop.set()

    def __exit__(self, *_: object) -> None:
        import asyncio
        import signal

        with suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


def check_addresses(urls: Sequence[str]) -> None:
    """UsageError for what is surely no address: a command after options, a misspelt command, a recording."""
    from diagnoser.commands import NAMES

    for url in urls:
        if url in NAMES:
            raise UsageError(
                f"{url!r} is a command and comes first: diagnose {url} ... (a host of that name: {url}:8000)"
            )
        if Path(url).is_dir() or url.endswith((".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")):
            raise UsageError(f"{url!r} is a recording: diagnose replay {url}")
        if url.endswith((".prom", ".txt")):
            raise UsageError(f"{url!r} is a saved page: diagnose page {url}")
        close = difflib.get_close_matches(url, NAMES, 1, 0.75) if url.isalpha() else []
        if close:
            raise UsageError(f"{url!r} is no command; did you mean {close[0]}? (a host of that name: {url}:8000)")


COMMAND = Command(
    name="",
    summary="Samples live engines and prints the verdict and the checklist of each.",
    usage="URL [URL ...]",
    examples=(
        ("diagnose localhost:8000", "30 s, a page a second"),
        ("diagnose 10.0.3.7:8000 10.0.3.8:8000 --window 2m", "several, side by side"),
        ("diagnose https://gw/model-a/metrics --header-file token.txt", "behind a gateway"),
        ("diagnose localhost:8000 --fact max_num_seqs=64 -v", "with what you know, everything shown"),
        ("diagnose localhost:8000 --format json > verdict.json", "for programs"),
        ("diagnose @prod.args", "engines, --l2 and --fact from a file, as on a command line"),
    ),
    options=options,
    run=run,
    details="Reads /metrics and the engine's configuration, by GET only. Ctrl-C diagnoses what was sampled so far.",
)
