"""`diagnose capacity`: tokens and concurrency from a model's config.json, before an engine runs."""

from __future__ import annotations

import argparse

from diagnoser.commands.base import Command
from diagnoser.errors import CapacityError, PageError, UnreachableError, UsageError
from diagnoser.model import Scrape


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    from diagnoser.capacity.command import add_arguments

    add_arguments(parser)
    parser.add_argument("--live", metavar="URL", help="a running engine, to compare with the pool size it reports")


def run(args: argparse.Namespace) -> int:
    """Compute and print. What cannot be computed is a usage error: a field or a flag is missing or does not fit."""
    from diagnoser.capacity import command

    if args.live is not None:
        args.observed_tokens = f"{reported_tokens(args.live):.0f}"
    try:
        return command.run(args)
    except CapacityError as error:
        raise UsageError(str(error)) from error


def reported_tokens(url: str) -> float:
    """The pool of one rank as a running engine reports it, null block included. Raises TargetError."""
    import asyncio

    from diagnoser.pipeline import snapshots_of, wanted_metrics
    from diagnoser.sources.exposition import PageParser
    from diagnoser.sources.http import HttpSource, open_client

    async def one_page() -> Scrape:
        async with open_client() as client:
            return await HttpSource(client, url, PageParser(wanted_metrics()).parse).scrape()

    scrape = asyncio.run(one_page())
    if scrape.error is not None:
        raise UnreachableError(scrape.error)
    for snapshot in snapshots_of(scrape, {}):
        facts = (snapshot.facts.get(name) for name in ("kv_cache_size_tokens", "max_total_num_tokens"))
        sizes = [float(fact.value) for fact in facts if fact is not None]
        if sizes or snapshot.pool.capacity:
            return sizes[0] if sizes else float(snapshot.pool.capacity or 0.0)
    raise PageError(f"{scrape.target.name} reports no pool size: SGLang does from 0.5.6, vLLM once it has started.")


COMMAND = Command(
    name="capacity",
    summary="KV bytes a token, pool and concurrency from a model's config.json.",
    usage="CONFIG",
    examples=(
        ("diagnose capacity config.json --pool-bytes 60GiB", "tokens and requests that fit"),
        ("diagnose capacity config.json --tp 8 --gpu-memory 80GB --format json", "from the size of the GPU"),
        ("diagnose capacity config.json --pool-bytes 60GiB --live 10.0.3.7:8000", "against what an engine reports"),
    ),
    options=options,
    run=run,
    details="Every assumption is printed. docs/capacity.md has the formulas and what they were checked against.",
)
