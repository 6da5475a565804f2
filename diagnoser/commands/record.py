"""`diagnose record URL [URL ...]`: keeps the pages of live engines as they come, for later and for others."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from diagnoser.commands.base import Command, add_http, add_interval, duration
from diagnoser.commands.live import check_addresses

if TYPE_CHECKING:
    from diagnoser.live import Engine, Plan
    from diagnoser.sources.recorder import RecordingWriter


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("urls", nargs="+", metavar="URL", help="host:port, or a URL; without a path /metrics is read")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="a .tar, .tar.gz or .tar.xz file, or a new folder (default diagnose-<UTC time>.tar.gz)",
    )
    group = parser.add_argument_group("sampling")
    group.add_argument(
        "--duration",
        type=duration,
        default=120.0,
        metavar="2m",
        help="how long (default 2m); Ctrl-C ends it and keeps all",
    )
    add_interval(group)
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    """Record and say what was recorded."""
    check_addresses(args.urls)
    import asyncio

    from diagnoser import config
    from diagnoser.commands.base import say
    from diagnoser.live import Plan
    from diagnoser.units import duration as words

    path = args.output or f"diagnose-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar.gz"
    headers = config.headers_of(args.header, args.header_file)
    plan = Plan(args.duration, args.interval, args.timeout, headers)
    pages, failed, seconds, why = asyncio.run(_record(args.urls, plan, path))
    lost = f", {failed} polls failed" if failed else ""
    print(f"{path}: {pages} pages in {words(max(seconds, 0.1))}{lost}. Diagnose it: diagnose replay {path}")
    if not pages:
        say(f"no page could be recorded. {why}")
    return 0 if pages else 3


async def _record(urls: Sequence[str], plan: Plan, path: str) -> tuple[int, int, float, str]:
    from diagnoser.commands.live import Interruptible
    from diagnoser.commands.progress import progress
    from diagnoser.live import sampler
    from diagnoser.sources.recorder import RecordingWriter

    async with sampler(urls, plan) as found:
        names = [engine.name for engine in found.engines]
        with RecordingWriter(path, names, poll_interval_seconds=plan.interval) as writer:
            with progress("recording", len(names), plan.window, plan.interval) as show, Interruptible(found):

                def keep(engine: Engine) -> None:
                    _write(writer, engine)
                    show(engine)

                await found.run(keep, patient=True)
            for engine in found.engines:
                _describe(writer, engine)
        pages = sum(engine.pages for engine in found.engines)
        times = [(e.first_at, e.last.at) for e in found.engines if e.first_at is not None and e.last is not None]
        why = next((e.last.error for e in found.engines if e.last is not None and e.last.error), "")
        seconds = max((last - first for first, last in times), default=0.0)
        return pages, sum(e.polls for e in found.engines) - pages, seconds, why


def _write(writer: RecordingWriter, engine: Engine) -> None:
    scrape = engine.last
    if scrape is None:
        return
    if engine.body is not None:
        writer.write_page(engine.name, scrape.at, engine.body)
    else:
        writer.write_error(engine.name, scrape.at, scrape.error or "no page")


def _describe(writer: RecordingWriter, engine: Engine) -> None:
    """Identity only: what the engine is, not how it is configured."""
    for window in engine.history.windows(engine.last.at if engine.last else 0.0, 1e9)[:1]:
        if window.snapshots:
            version = engine.history.facts.get("version")
            known = window.engine
            writer.describe(
                engine.name,
                engine=known.family,
                version=str(version.value) if version else known.version,
                model=known.model,
            )


COMMAND = Command(
    name="record",
    summary="Records the pages of live engines into a file.",
    usage="URL [URL ...]",
    examples=(
        ("diagnose record localhost:8000 --duration 2m -o incident.tar.gz", "a page a second for two minutes"),
        ("diagnose record 10.0.3.7:8000 10.0.3.8:8000 --interval 5s", "two engines, a page every 5 s"),
    ),
    options=options,
    run=run,
    details=(
        "A recording holds metrics pages and who the engine is (target, version, model), nothing else. What was "
        "recorded so far survives an interruption."
    ),
)
