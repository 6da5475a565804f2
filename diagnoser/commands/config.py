"""`diagnose config check FILE`: is this a configuration for `diagnose serve`?"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.commands.base import Command
from diagnoser.errors import DiagnoserError, UsageError

if TYPE_CHECKING:
    from diagnoser.service.config import Config


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("action", choices=("check",), help="reads the file and says everything that is wrong with it")
    parser.add_argument("file", metavar="FILE", help="the configuration (docs/service.md)")


def run(args: argparse.Namespace) -> int:
    """Exit 0 if the service would take it, 64 with a line a problem if not."""
    from diagnoser.service.config import load

    config = load(Path(args.file))
    problems = [str(error) for check in _checks(config) if (error := _failure(check)) is not None]
    if problems:
        raise UsageError("\n".join(dict.fromkeys(problems)))
    kinds = ", ".join(group.kind for group in config.targets) or "none"
    every = f"window {config.window:g} s, evaluated every {config.evaluate_every:g} s"
    print(f"{args.file}: good; targets: {kinds}; {every}")
    return 0


def _checks(config: Config) -> Iterator[Callable[[], object]]:
    """What lies beyond the file itself: rules, secrets, receivers."""
    from diagnoser.service.alerting import check
    from diagnoser.service.api.tokens import read_tokens
    from diagnoser.service.config_base import secret_of
    from diagnoser.service.rules import rules_of

    yield lambda: rules_of(config, strict=True)
    yield lambda: check(config.notify, config.webhook)
    if config.web.tokens_file is not None:
        yield partial(read_tokens, config.web.tokens_file)
    for group in config.targets:
        for one in (group, group.http_sd, group.prometheus):
            if one is not None and one.bearer_file is not None:
                yield partial(secret_of, one.bearer_file)


def _failure(check: Callable[[], object]) -> DiagnoserError | None:
    try:
        check()
    except DiagnoserError as error:
        return error
    return None


COMMAND = Command(
    name="config",
    summary="Checks a configuration of `diagnose serve`.",
    usage="check FILE",
    examples=(("diagnose config check diagnoser.yaml", "exit code 0 if it is good, else 64 and what is wrong where"),),
    options=options,
    run=run,
    details="Asks no target and no receiver, but reads secret files and rule folders. Never prints a secret.",
)
