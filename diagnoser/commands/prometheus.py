"""`diagnose --prometheus URL`: engines as a Prometheus-compatible server has stored them, now or in the past."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.commands.base import Command, add_facts, add_http, add_output, duration
from diagnoser.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.fleet import Found
    from diagnoser.rulebook.rules import Rulebook
    from diagnoser.served import Wish
    from diagnoser.sources.prometheus.access import Access
    from diagnoser.sources.prometheus.api import Server


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("--prometheus", required=True, metavar="URL", help="the server, with its prefix if it has one")
    group = parser.add_argument_group("which engines, and when")
    group.add_argument(
        "--match",
        action="append",
        default=[],
        metavar="'job=\"vllm\"'",
        help="only engines whose series match (PromQL label matchers); may be repeated, all must match",
    )
    group.add_argument(
        "--at",
        metavar="TIME",
        help="the end of the window: 03:12, '2026-11-29 03:12', 2026-11-29T03:12:00+01:00 or unix seconds "
        "(default: 5 s ago)",
    )
    group.add_argument(
        "--tz", default="UTC", metavar="ZONE", help="zone of a TIME that has none, like Europe/Berlin (default UTC)"
    )
    group.add_argument(
        "--window", type=duration, default=300.0, metavar="5m", help="what a verdict is about (default 5m)"
    )
    group.add_argument(
        "--evaluate",
        default="auto",
        choices=("auto", "recorded", "server", "samples"),
        help="samples: from raw samples, exact (auto: up to 20 ranks); server: in PromQL (auto: more); recorded: by "
        "the rules of `rules export` (auto: if they are loaded)",
    )
    group.add_argument("--by", default="", metavar="LABELS", help="more labels that tell targets apart: cluster,pod")
    group.add_argument(
        "--timeout", type=duration, default=30.0, metavar="30s", help="longest wait for one answer (default 30s)"
    )
    _access_options(parser)
    add_facts(parser)
    add_output(parser)


def _access_options(parser: argparse.ArgumentParser) -> None:
    add_http(parser)
    group = parser.add_argument_group("access")
    group.add_argument("--tenant", default="", metavar="NAME", help="sent as X-Scope-OrgID (Mimir, Cortex)")
    group.add_argument("--bearer-file", default="", metavar="FILE", help="a file with the bearer token")
    group.add_argument("--ca", default="", metavar="FILE", help="certificates that the server's is verified against")
    group.add_argument("--cert", default="", metavar="FILE", help="the client certificate, for mutual TLS")
    group.add_argument("--key", default="", metavar="FILE", help="its key, if not in the same file")


def run(args: argparse.Namespace) -> int:
    """Ask, diagnose, print."""
    import asyncio
    import time

    from diagnoser import clock
    from diagnoser.commands import setup
    from diagnoser.commands.servednotes import notes
    from diagnoser.outputs.base import Report
    from diagnoser.served import SETTLE_SECONDS, Wish
    from diagnoser.sources.prometheus.selectors import user_matchers

    zone, now = clock.zone_of(args.tz), time.time()
    at = now - SETTLE_SECONDS if args.at is None else clock.moment(args.at, zone, now)
    wish = Wish(at, args.window, user_matchers(args.match), setup.facts(args))
    book = setup.rulebook(args.rules)
    with _uncollected():
        server, found = asyncio.run(_ask(args, wish, book))
    return setup.show(Report(found.diagnoses, tuple(notes(server, found, wish, zone))), args)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the cycle collector: no page has cycles, and walking all of them again and again costs a quarter more."""
    import gc

    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


async def _ask(args: argparse.Namespace, wish: Wish, book: Rulebook) -> tuple[Server, Found]:
    from diagnoser.fleet import fleet
    from diagnoser.sources.prometheus.access import open_client
    from diagnoser.sources.prometheus.api import Server

    access, by = access_of(args), tuple(label.strip() for label in args.by.split(",") if label.strip())
    async with open_client(access) as client:
        server = Server(client, access.url, timeout=args.timeout)
        return server, await fleet(server, wish, book, args.evaluate, by)


def access_of(args: argparse.Namespace) -> Access:
    """The options as an access."""
    from diagnoser import config
    from diagnoser.sources.prometheus.access import TENANT_HEADER, Access

    headers = config.headers_of(args.header, args.header_file)
    if args.tenant:
        headers[TENANT_HEADER] = args.tenant
    if args.bearer_file:
        headers["Authorization"] = f"Bearer {_token(args, headers)}"
    return Access(args.prometheus, headers, args.ca, args.cert, args.key)


def _token(args: argparse.Namespace, headers: Mapping[str, str]) -> str:
    if "@" in args.prometheus.partition("://")[2].partition("/")[0] or "authorization" in map(str.lower, headers):
        raise UsageError("--bearer-file: the address or a header already says who asks; give one of them.")
    try:
        token = Path(args.bearer_file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"--bearer-file {args.bearer_file}: cannot be read as text.") from None
    if not token or len(token.split()) != 1:
        raise UsageError(f"--bearer-file {args.bearer_file}: holds no token; it must be the only word in it.")
    return token


COMMAND = Command(
    name="",
    summary="Diagnoses the engines that a Prometheus-compatible server scrapes.",
    usage="--prometheus URL",
    examples=(
        ("diagnose --prometheus http://prometheus:9090", "all engines, now: a table, and those that are bound"),
        ("diagnose --prometheus http://prometheus:9090 --at 03:12 --tz Europe/Berlin", "last night"),
        ("diagnose --prometheus http://mimir/prometheus --tenant ml", "behind a prefix, one tenant"),
        ("diagnose --prometheus http://vm:8428 --match 'job=\"vllm\"' -v", "some of them, everything shown"),
    ),
    options=options,
    run=run,
    details=(
        "Finds the engines by their own series. A few are diagnosed from raw samples: the verdicts are those of live "
        "pages at the server's scrape interval; for a fleet the server computes every signal, one query each, and the "
        "worst are then looked at from samples. Prometheus 2.42 or newer, VictoriaMetrics, Thanos, Mimir."
    ),
)
