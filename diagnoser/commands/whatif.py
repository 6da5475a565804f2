"""`diagnose what-if RECORDING|URL [...]`: what each change would do to admission."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.commands.base import Command, add_facts, add_http, add_window

if TYPE_CHECKING:
    from diagnoser.model import Diagnosis
    from diagnoser.rulebook.rules import Rulebook


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("sources", nargs="+", metavar="RECORDING|URL", help="recordings, or live engines to sample")
    add_window(parser)
    add_http(parser)
    add_facts(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=("text", "json"), default="text", help="default text")


def run(args: argparse.Namespace) -> int:
    """Diagnose, predict, print. Returns 0, or 3 where nothing could be predicted."""
    from diagnoser.commands import setup
    from diagnoser.outputs.what_if import as_json, as_text

    book, notes = setup.rulebook(args.rules), list[str]()
    recordings = [source for source in args.sources if Path(source).exists()]
    urls = [source for source in args.sources if source not in recordings]
    found = _recorded(recordings, book, args, notes) + (_live(urls, book, args, notes) if urls else [])
    look = setup.look()
    setup.write(as_json(found, notes) if args.format == "json" else as_text(found, notes, look.width))
    return 0 if any(one.rho is not None for diagnosis in found for one in diagnosis.what_if) else 3


def _recorded(paths: list[str], book: Rulebook, args: argparse.Namespace, notes: list[str]) -> list[Diagnosis]:
    from diagnoser.commands import setup
    from diagnoser.outputs.base import badness
    from diagnoser.sources.recording import open_recording
    from diagnoser.stretch import diagnosed

    facts = setup.facts(args)
    found: list[Diagnosis] = []
    for path in paths:
        recording = open_recording(path)
        found += diagnosed(recording, book, facts, args.window, badness)
        notes += recording.warnings
    return found


def _live(urls: list[str], book: Rulebook, args: argparse.Namespace, notes: list[str]) -> list[Diagnosis]:
    import asyncio

    from diagnoser.commands.live import check_addresses, plan_of, sampled
    from diagnoser.pipeline import diagnose
    from diagnoser.stretch import with_what_if

    check_addresses(urls)
    windows, said = asyncio.run(sampled(urls, plan_of(args), "sampling"))
    notes += said
    return [with_what_if(one, book) for one in diagnose(windows, book)]


COMMAND = Command(
    name="what-if",
    summary="What each change would bring: fp8 KV, a replica, outputs, L2, ...",
    usage="RECORDING|URL [...]",
    examples=(
        ("diagnose what-if incident.tar.gz", "from the stretch in which the gate was closed"),
        ("diagnose what-if 10.0.3.7:8000 --window 60s", "from a minute of a live engine"),
        ("diagnose what-if incident.tar.gz --fact max_num_seqs=64 --format json", "with a limit no page shows"),
    ),
    options=options,
    run=run,
    details=(
        "Of a recording the worst state counts, as long as it lasted and requests kept coming. Concurrency is\n"
        "requests that run at once, rho arrivals over what could be served: above 1 the queue grows. Each line says\n"
        "what it takes for granted and how far it is off; docs/forecast.md has the measurements."
    ),
)
