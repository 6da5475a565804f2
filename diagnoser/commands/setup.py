"""From parsed options to what the commands work with: rules, facts, the reader's terminal, rendered reports."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from diagnoser.commands.base import say_all
from diagnoser.data import data_dir
from diagnoser.engines.base import FACTS
from diagnoser.errors import UsageError
from diagnoser.facts import facts_of
from diagnoser.model import Fact
from diagnoser.outputs import outputs
from diagnoser.outputs.base import Look, Report, exit_code, urgency
from diagnoser.pipeline import rule_problems
from diagnoser.rulebook.load import load
from diagnoser.rulebook.rules import Rulebook


def rulebook(folders: Sequence[str]) -> Rulebook:
    """The shipped rules with the user's on top. What is wrong with them is said, and the rest goes on."""
    missing = next((folder for folder in folders if not Path(folder).is_dir()), None)
    if missing is not None:
        raise UsageError(f"--rules {missing}: no such folder; it may hold checks/, remedies/, thresholds.yaml, ...")
    book = load([data_dir("rules"), *map(Path, folders)])
    problems = rule_problems(book) if folders else book.errors
    say_all([f"{problem} (skipped, the other rules stand)" for problem in problems])
    return book


def facts(args: argparse.Namespace) -> Mapping[str, Fact]:
    """Facts of --facts and --fact."""
    found, warnings = facts_of(args.facts, args.fact, FACTS)
    say_all(warnings)
    return found


def colourful(stream: IO[str]) -> bool:
    """Colour only on a terminal that wants it (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def speaks_unicode(stream: IO[str]) -> bool:
    """Can the stream show bars and dots?"""
    try:
        "█▁→·…".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def look(verbose: bool = False) -> Look:
    """The terminal behind stdout; 80 columns where it is none."""
    terminal = sys.stdout.isatty()
    size = shutil.get_terminal_size((80, 24))
    width = size.columns if terminal or "COLUMNS" in os.environ else 80
    height = size.lines - 1 if terminal and not verbose else 0
    return Look(max(60, min(width, 140)), colourful(sys.stdout), speaks_unicode(sys.stdout), verbose, height)


def write(text: str) -> None:
    """To stdout, with what it cannot encode replaced."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def show(report: Report, args: argparse.Namespace, other_rows: int = 0) -> int:
    """Renders the report in the format asked for; `other_rows` of the screen are taken. Returns the exit code."""
    seen = look(args.verbose)
    seen = replace(seen, height=max(1, seen.height - other_rows)) if seen.height else seen
    write(outputs()[args.format].render(report, seen))
    if args.format != "text":
        say_all(report.notes)
    return code(map(urgency, report.diagnoses), args)


def code(urgencies: Iterable[int], args: argparse.Namespace) -> int:
    """The exit code, 0 with --exit-zero."""
    found = exit_code(urgencies)
    return 0 if args.exit_zero else found
