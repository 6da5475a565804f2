"""`diagnose config check FILE`: is this a configuration for `diagnose serve`?"""

from __future__ import annotations

import argparse
from pathlib import Path

from diagnoser.commands.base import Command


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("action", choices=("check",), help="reads the file and says everything that is wrong with it")
    parser.add_argument("file", metavar="FILE", help="the configuration (docs/service.md)")


def run(args: argparse.Namespace) -> int:
    """Exit 0 if the service would take it, 64 with a line a problem if not."""
    from diagnoser.service.alerting import check
    from diagnoser.service.config import load
    from diagnoser.service.rules import rules_of

    config = load(Path(args.file))
    rules_of(config, strict=True)
    check(config.notify, config.webhook)
    kinds = ", ".join(group.kind for group in config.targets) or "none"
    print(
        f"{args.file}: good; targets: {kinds}; window {config.window:g} s, evaluated every {config.evaluate_every:g} s"
    )
    return 0


COMMAND = Command(
    name="config",
    summary="Checks a configuration of `diagnose serve`.",
    usage="check FILE",
    examples=(("diagnose config check diagnoser.yaml", "exit code 0 if it is good, else 64 and what is wrong where"),),
    options=options,
    run=run,
    details="Asks no target and no receiver, but reads secret files and rule folders. Never prints a secret.",
)
