"""`diagnose replay RECORDING`: every window of a recording, the worst one in full."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from diagnoser.commands.base import Command, add_facts, add_l2, add_output, duration

if TYPE_CHECKING:
    from diagnoser.model import Diagnosis, Fact
    from diagnoser.rulebook.rules import Rulebook
    from diagnoser.sources.recording import Recording

Instant = tuple["Diagnosis", ...]


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("recording", metavar="RECORDING", help="a folder, .tar, .tar.gz or .tar.xz")
    group = parser.add_argument_group("windows")
    group.add_argument(
        "--window", type=duration, default=30.0, metavar="30s", help="what a verdict is about (default 30s)"
    )
    group.add_argument("--step", type=duration, default=5.0, metavar="5s", help="time between two windows (default 5s)")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--at",
        metavar="TIME",
        help="the window that ends at 02:14:05, 2026-11-29T02:14:05Z (UTC), +90s or unix seconds",
    )
    which.add_argument("--last", action="store_true", help="the last window instead of the worst")
    what = "a recording of host tier pages of the same time, for all engines or one; sub-folders are joined anyway"
    add_l2(parser, what, "[ENGINE=]RECORDING")
    add_facts(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Play, diagnose, print."""
    from diagnoser.commands import setup
    from diagnoser.outputs import outputs
    from diagnoser.sources.recording import open_recording

    book, facts = setup.rulebook(args.rules), setup.facts(args)
    recording = open_recording(args.recording)
    if args.at is not None or args.last:
        return _one(recording, book, facts, args)
    output = outputs()[args.format]
    if output.streams:
        return _stream(_instants(recording, book, facts, args), recording, args)
    return _whole(_instants(recording, book, facts, args), recording, args)


def _instants(
    recording: Recording, book: Rulebook, facts: Mapping[str, Fact], args: argparse.Namespace
) -> Iterator[Instant]:
    from diagnoser.replay import replay

    return replay(recording, book, facts, args.window, args.step, _beside(args))


def _beside(args: argparse.Namespace) -> list[tuple[str, Recording]]:
    from diagnoser.l2pages import split_spec
    from diagnoser.sources.recording import open_recording

    return [(only, open_recording(path)) for only, path in map(split_spec, args.l2)]


def _one(recording: Recording, book: Rulebook, facts: Mapping[str, Fact], args: argparse.Namespace) -> int:
    from diagnoser import config
    from diagnoser.commands import setup
    from diagnoser.outputs.base import Report
    from diagnoser.replay import instant, span

    first, last = span(recording)
    at = last if args.at is None else config.moment(args.at, first, last)
    found = instant(recording, book, facts, args.window, at, _beside(args))
    return setup.show(Report(found, recording.warnings), args)


def _stream(instants: Iterator[Instant], recording: Recording, args: argparse.Namespace) -> int:
    """Every instant as soon as it is known."""
    from diagnoser.commands import setup
    from diagnoser.commands.base import say_all
    from diagnoser.outputs import outputs
    from diagnoser.outputs.base import Report, urgency

    output, look, found = outputs()[args.format], setup.look(args.verbose), set[int]()
    for diagnoses in instants:
        setup.write(output.render(Report(diagnoses), look))
        found.update(map(urgency, diagnoses))
    say_all(recording.warnings)
    return setup.code(found, args)


def _whole(instants: Iterator[Instant], recording: Recording, args: argparse.Namespace) -> int:
    """Every instant, or the worst one with a timeline around it."""
    from diagnoser.commands import setup
    from diagnoser.outputs import outputs
    from diagnoser.outputs.base import Report, badness, moment

    every = outputs()[args.format].instants
    kept: list[Diagnosis] = []
    worst: tuple[int, float] | None = None
    moments = []
    for diagnoses in instants:
        moments += [moment(diagnosis) for diagnosis in diagnoses]
        bad = max(map(badness, diagnoses))
        if every:
            kept += diagnoses
        elif worst is None or bad >= worst:
            kept, worst = list(diagnoses), bad
    return setup.show(Report(tuple(kept), recording.warnings, tuple(moments)), args)


COMMAND = Command(
    name="replay",
    summary="Diagnoses a recording: worst window in full, timeline of all.",
    usage="RECORDING",
    examples=(
        ("diagnose replay incident.tar.gz", "the worst window, and the timeline"),
        ("diagnose replay incident.tar.gz --at 02:14:05", "the window that ends then"),
        ("diagnose replay incident.tar.gz --last --fact max_num_seqs=64", "how it ended, with what you know"),
        ("diagnose replay incident.tar.gz --format jsonl", "every window and engine rank, a line each"),
    ),
    options=options,
    run=run,
    details=(
        "Windows end at the first page + WINDOW, then every STEP. text and markdown show the worst window (of equals "
        "the last), json and jsonl all of them; the exit code is that of the worst. Facts come from the pages, --fact "
        "and --facts, never from the recording's meta.json."
    ),
)
