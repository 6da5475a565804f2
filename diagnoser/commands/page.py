"""`diagnose page FILE|-`: what one saved page can tell, and what it cannot."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from diagnoser.commands.base import Command, add_facts, add_output
from diagnoser.errors import RecordingError


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("file", metavar="FILE", help="a saved metrics page, - for standard input")
    add_facts(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Read, diagnose, print."""
    from diagnoser.commands import setup
    from diagnoser.model import Target
    from diagnoser.outputs.base import Report
    from diagnoser.pipeline import History, diagnose, wanted_metrics
    from diagnoser.sources.base import decode_page, to_scrape
    from diagnoser.sources.exposition import PageParser

    book, facts = setup.rulebook(args.rules), setup.facts(args)
    name = "standard input" if args.file == "-" else args.file
    at = time.time()
    history = History(name, 1.0, facts)
    history.add(to_scrape(Target(name), at, decode_page(_read(args.file)), PageParser(wanted_metrics()).parse))
    windows = history.windows(at, 1.0)
    found = diagnose(windows, book)
    readable = any(window.snapshots for window in windows)
    report = Report(found, (_ADVICE,) if readable else ())
    if args.format == "text" and readable:
        from diagnoser.outputs.terminal.onepage import onepage
        from diagnoser.outputs.terminal.page import rendered

        look = setup.look(args.verbose)
        snapshots = [window.snapshots[-1] for window in windows]
        setup.write(rendered(onepage(found, snapshots, report.notes, look), look))
        return setup.code((1,), args)
    return setup.show(report, args)


_ADVICE = (
    "one page has no rates: record half a minute (diagnose record URL --duration 30s), or diagnose the live engine."
)


def _read(file: str) -> bytes:
    from diagnoser.sources.base import MAX_PAGE_BYTES

    try:
        if file == "-":
            body = sys.stdin.buffer.read(MAX_PAGE_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                body = stream.read(MAX_PAGE_BYTES + 1)
    except OSError as error:
        raise RecordingError(
            f"{file}: cannot be read ({error.strerror}); give a saved metrics page, or - for standard input."
        ) from None
    if len(body) > MAX_PAGE_BYTES:
        raise RecordingError(
            f"{file}: is larger than {MAX_PAGE_BYTES / 2**20:g} MiB; this is no metrics page of an engine."
        )
    return body


COMMAND = Command(
    name="page",
    summary="What one saved metrics page tells, and what not (exit code 3).",
    usage="FILE|-",
    examples=(
        ("diagnose page metrics.txt", "a page that somebody sent"),
        ("curl -s localhost:8000/metrics | diagnose page -", "the same from a pipe"),
    ),
    options=options,
    run=run,
    details="A counter says nothing at one instant, so the closed gate cannot be named from one page.",
)
