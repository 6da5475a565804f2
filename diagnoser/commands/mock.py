"""`diagnose mock RECORDING --port N`: serves a recording as a live engine."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack

from diagnoser.commands.base import Command, port, positive


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("recording", metavar="RECORDING", help="a folder, .tar, .tar.gz or .tar.xz")
    parser.add_argument(
        "--port",
        type=port,
        default=0,
        metavar="N",
        help="TCP port; several targets take N, N+1, ... (default: a free one)",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default 127.0.0.1)"
    )
    parser.add_argument("--speed", type=positive, default=1.0, metavar="X", help="play X times as fast (default 1)")
    parser.add_argument("--loop", action="store_true", help="begin again at the end, as if the engine restarted")


def run(args: argparse.Namespace) -> int:
    """Serve until the recording ends or Ctrl-C."""
    from diagnoser.commands.base import say_all
    from diagnoser.sources.mock import MockEngine
    from diagnoser.sources.recording import open_recording
    from diagnoser.units import duration

    recording = open_recording(args.recording)
    say_all(recording.warnings)
    with ExitStack() as stack:
        engines = []
        for number, target in enumerate(recording.targets):
            chosen = args.port + number if args.port else 0
            engine = MockEngine(target, host=args.host, port=chosen, speed=args.speed, loop=args.loop)
            engines.append(stack.enter_context(engine))
            ends = "over and over" if args.loop else f"for {duration(engine.duration_seconds)}"
            print(f"{target.name}: {engine.url} {ends}; Ctrl-C stops", flush=True)
        while (left := max(engine.remaining_seconds for engine in engines)) > 0:
            time.sleep(min(left, 1.0))
    return 0


COMMAND = Command(
    name="mock",
    summary="Serves a recording as a live engine's /metrics.",
    usage="RECORDING",
    examples=(
        ("diagnose mock incident.tar.gz --port 8000", "then, elsewhere: diagnose localhost:8000"),
        ("diagnose mock incident.tar.gz --port 8000 --speed 10 --loop", "ten times as fast, over and over"),
    ),
    options=options,
    run=run,
    details="For trying dashboards, alerts and rules against a real incident. Nothing but GET /metrics is answered.",
)
