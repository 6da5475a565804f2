"""`diagnose explain ID`: what a check, verdict, remedy, threshold, gate, signal or fact means, and why."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Mapping

from diagnoser.commands.base import Command
from diagnoser.errors import UsageError

LISTS = ("checks", "verdicts", "remedies", "thresholds", "gates", "signals", "facts")


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("id", metavar="ID", help=f"an id, or one of {', '.join(LISTS)} for a list")
    parser.add_argument("--rules", action="append", default=[], metavar="DIR", help="a folder of your own rules on top")


def run(args: argparse.Namespace) -> int:
    """Print the explanation, or the list."""
    from diagnoser.commands import setup
    from diagnoser.explain import entries

    known = entries(setup.rulebook(args.rules))
    name = args.id.strip()
    if name in LISTS:
        width = max(len(key) for key in known[name]) + 2
        setup.write("".join(f"{key:<{width}}{entry.title}\n" for key, entry in known[name].items()))
        return 0
    found = [
        f"{kind[:-1].replace('remedie', 'remedy')} {name}: {entries_of[name].title}\n\n{entries_of[name].text}"
        for kind, entries_of in known.items()
        if name in entries_of
    ]
    if not found:
        raise UsageError(_unknown(name, known))
    setup.write("\n".join(found))
    return 0


def _unknown(name: str, known: Mapping[str, Mapping[str, object]]) -> str:
    names = [key for entries_of in known.values() for key in entries_of]
    close = difflib.get_close_matches(name, names, 3, 0.5)
    advice = f"did you mean {', '.join(close)}?" if close else f"ask for a list: {', '.join(LISTS)}."
    return f"{name!r} is no check, verdict, remedy, threshold, gate, signal or fact; {advice}"


COMMAND = Command(
    name="explain",
    summary="Explains a check, verdict, remedy, threshold, gate, signal, fact.",
    usage="ID",
    examples=(
        ("diagnose explain head_does_not_fit", "what is asked, why, and what unknown means"),
        ("diagnose explain l1_reservation", "a verdict"),
        ("diagnose explain gate_share_min", "a threshold and its reason"),
        ("diagnose explain facts", "what --fact understands"),
    ),
    options=options,
    run=run,
)
