"""`diagnose capacity`: tokens and concurrency from a model's config.json, before an engine runs."""

from __future__ import annotations

import argparse

from diagnoser.commands.base import Command
from diagnoser.errors import CapacityError, UsageError


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    from diagnoser.capacity.command import add_arguments

    add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Compute and print. What cannot be computed is a usage error: a field or a flag is missing or does not fit."""
    from diagnoser.capacity import command

    try:
        return command.run(args)
    except CapacityError as error:
        raise UsageError(str(error)) from error


COMMAND = Command(
    name="capacity",
    summary="KV bytes a token, pool and concurrency from a model's config.json.",
    usage="CONFIG",
    examples=(
        ("diagnose capacity config.json --pool-bytes 60GiB", "tokens and requests that fit"),
        ("diagnose capacity config.json --tp 8 --gpu-memory 80GB --format json", "from the size of the GPU"),
    ),
    options=options,
    run=run,
    details="Every assumption is printed. docs/capacity.md has the formulas and what they were checked against.",
)
