"""`diagnose rules list|lint`: what the rules are, and whether a folder of your own is right."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.commands.base import Command, say_all
from diagnoser.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.rulebook.rules import Rulebook


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("action", choices=("list", "lint"), help="list all rules, or look for mistakes")
    parser.add_argument("folder", nargs="?", metavar="DIR", help="a folder of your own on top of the shipped rules")


def run(args: argparse.Namespace) -> int:
    """List, or lint: 1 if something is wrong."""
    from diagnoser.commands import setup
    from diagnoser.data import data_dir
    from diagnoser.pipeline import rule_problems
    from diagnoser.rulebook.load import load

    if args.folder is not None and not Path(args.folder).is_dir():
        raise UsageError(
            f"{args.folder}: no such folder; it may hold checks/, remedies/ and *.yaml as the shipped rules do."
        )
    book = load([data_dir("rules"), *([Path(args.folder)] if args.folder else [])])
    problems = rule_problems(book)
    if args.action == "lint":
        setup.write("".join(f"{problem}\n" for problem in problems))
        setup.write(f"{_counts(book)}: {len(problems) or 'no'} {'mistake' if len(problems) == 1 else 'mistakes'}.\n")
        return 1 if problems else 0
    setup.write(_listed(book))
    say_all([f"{problem} (skipped)" for problem in book.errors])
    return 0


def _counts(book: Rulebook) -> str:
    parts = {
        "checks": book.checks, "verdicts": book.verdicts, "remedies": book.remedies, "gates": book.gates,
        "thresholds": book.thresholds,
    }  # fmt: skip
    return ", ".join(f"{len(found)} {name}" for name, found in parts.items())


def _listed(book: Rulebook) -> str:
    width = max(len(check.id) for check in book.checks) + 2
    lines = ["checks, in the order of the checklist"]
    lines += [f"  {check.id:<{width}}{check.question}" for check in book.checks]
    lines += ["", "gates, in the order they are looked at"]
    lines += [f"  {gate.id:<{width}}{gate.title}" for gate in book.gates]
    lines += ["", "verdicts, the first that fits counts"]
    lines += [f"  {verdict.id:<{width}}{verdict.headline}" for verdict in book.verdicts]
    lines += ["", "remedies"]
    lines += [f"  {remedy.id:<{width}}{remedy.action}" for remedy in book.remedies.values()]
    lines += ["", f"{_counts(book)}; `diagnose explain ID` tells about each."]
    return "\n".join(lines) + "\n"


COMMAND = Command(
    name="rules",
    summary="Lists the rules, or looks for mistakes in a folder of your own.",
    usage="list|lint [DIR]",
    examples=(
        ("diagnose rules list", "every check, gate, verdict and remedy"),
        ("diagnose rules lint my-rules", "mistakes with file and line; exit code 1 if there are any"),
    ),
    options=options,
    run=run,
)
