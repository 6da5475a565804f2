"""`diagnose demo`: a recorded incident, served over HTTP like a live engine and diagnosed live."""

from __future__ import annotations

import argparse

from diagnoser.commands.base import Command, add_output, positive

SECONDS = 30.0
ROWS = 4
"""What the demo says of itself on the same screen."""


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument(
        "--speed", type=positive, default=3.0, metavar="X", help="play X times as fast (default 3: ten seconds)"
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Serve, sample, diagnose, print. The demo succeeded if it came to a verdict, whatever that is."""
    import asyncio

    from diagnoser.commands import setup
    from diagnoser.commands.base import say
    from diagnoser.commands.live import sampled
    from diagnoser.demo import incident
    from diagnoser.live import Plan
    from diagnoser.outputs.base import Report, exit_code, urgency
    from diagnoser.pipeline import diagnose
    from diagnoser.sources.mock import MockEngine

    book, recorded = setup.rulebook([]), incident()
    with MockEngine(recorded, speed=args.speed) as engine:
        say(f"a recorded engine is served at {engine.url}, {args.speed:g} times as fast")
        plan = Plan(window=SECONDS, interval=1.0, speed=args.speed)
        windows, notes = asyncio.run(sampled([engine.url], plan, "sampling"))
    found = diagnose(windows, book)
    setup.show(Report(found, notes), args, other_rows=ROWS)
    code = exit_code(map(urgency, found))
    say(f"for a live engine the exit code is {code}. Now yours: diagnose HOST:PORT")
    return 0


COMMAND = Command(
    name="demo",
    summary="Plays a recorded incident and diagnoses it live, in ten seconds.",
    usage="",
    examples=(
        ("diagnose demo", "see what a verdict looks like"),
        ("diagnose demo --speed 1 -v", "in real time, everything shown"),
    ),
    options=options,
    run=run,
    details="Needs no engine and no GPU: the pages of a real one are served at a free port of this machine.",
)
