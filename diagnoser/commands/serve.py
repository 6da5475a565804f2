"""`diagnose serve`: watches engines for ever, remembers, answers over HTTP, alerts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagnoser.commands.base import L2_HELP, Command, add_facts, add_http, add_l2, duration
from diagnoser.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.service.config import Config
    from diagnoser.service.service import Service

SWITCH_SECONDS = 0.001
"""How long the thread that evaluates may keep the polls waiting; Python's default is 5 ms."""


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument("urls", nargs="*", metavar="URL", help="engines beside those of the configuration")
    parser.add_argument("--config", metavar="FILE", help="the configuration (docs/service.md); read again at SIGHUP")
    group = parser.add_argument_group("instead of a configuration, or on top of it")
    group.add_argument("--listen", metavar="HOST:PORT", help="where to answer (default 127.0.0.1:9180)")
    group.add_argument("--tokens-file", metavar="FILE", help="who may ask; needed if --listen is no loopback address")
    group.add_argument("--insecure", action="store_true", help="let anybody who reaches the address read and change")
    group.add_argument("--data", metavar="DIR", help="folder of the history (default: in memory)")
    group.add_argument("--window", type=duration, metavar="30s", help="what a verdict is about (default 30s)")
    group.add_argument("--evaluate-every", type=duration, metavar="5s", help="time between two verdicts (default 5s)")
    group.add_argument("--interval", type=duration, metavar="2s", help="time between two pages of URL (default 2s)")
    group.add_argument("--timeout", type=duration, metavar="5s", help="longest wait for a page of URL (default 5s)")
    group.add_argument("--log-format", choices=("text", "json"), help="lines on stderr (default text)")
    group.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="default info")
    add_l2(parser, L2_HELP, "[ENGINE=]URL")
    add_http(parser)
    add_facts(parser)


def run(args: argparse.Namespace) -> int:
    """Runs until SIGTERM or Ctrl-C."""
    if not args.urls and args.config is None:
        raise UsageError("nothing to watch: give the address of an engine, or --config FILE (docs/service.md)")
    from diagnoser.commands.live import check_addresses

    check_addresses(args.urls)
    import asyncio

    from diagnoser.service import logs
    from diagnoser.service.service import Service

    path = None if args.config is None else Path(args.config)
    load = _loader(args, path)
    service = Service(load, None if path is None else path.parent, path)
    logs.set_up(service.config.log)
    sys.setswitchinterval(SWITCH_SECONDS)
    asyncio.run(_serve(service))
    return 0


def _loader(args: argparse.Namespace, path: Path | None) -> Callable[[], Config]:
    """Reads the file, if there is one, and puts the command line on top."""
    adjust = _adjustment(args)

    def load() -> Config:
        from diagnoser.service.config import load as load_file
        from diagnoser.service.config import validate
        from diagnoser.service.config_yaml import Document

        if path is not None:
            return load_file(path, adjust=adjust)
        data: dict[str, Any] = {}
        adjust(data)
        return validate(Document(data), "command line", Path.cwd())

    return load


def _adjustment(args: argparse.Namespace) -> Callable[[Any], None]:
    group = _group(args)
    web = {"listen": args.listen, "tokens_file": _absolute(args.tokens_file), "insecure": args.insecure or None}
    sections = {"web": web, "log": {"format": args.log_format, "level": args.log_level}}
    if args.data is not None:
        sections["history"] = {"path": _absolute(str(Path(args.data) / "diagnoser.db"))}
    plain = {"window": args.window, "evaluate_every": args.evaluate_every}

    def adjust(data: dict[str, Any]) -> None:
        if group is not None:
            data["targets"] = [*(data.get("targets") or []), group]
        data.update({name: value for name, value in plain.items() if value is not None})
        if args.rules:
            data["rules"] = [*(data.get("rules") or []), *map(_absolute, args.rules)]
        for name, section in sections.items():
            given = {key: value for key, value in section.items() if value is not None}
            if given and isinstance(data.get(name) or {}, dict):
                data[name] = {**(data.get(name) or {}), **given}

    return adjust


def _group(args: argparse.Namespace) -> dict[str, Any] | None:
    """The addresses of the command line as an entry of `targets`."""
    if not args.urls:
        return None
    from diagnoser import config
    from diagnoser.commands import setup

    given = {
        "static": args.urls,
        "l2": args.l2 or None,
        "interval": args.interval,
        "timeout": args.timeout,
        "headers": config.headers_of(args.header, args.header_file) or None,
        "facts": {fact.name: fact.value for fact in setup.facts(args).values()} or None,
    }
    return {key: value for key, value in given.items() if value is not None}


def _absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).absolute())


async def _serve(service: Service) -> None:
    import asyncio
    import signal

    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    reloads: set[asyncio.Task[Any]] = set()

    def stop() -> None:
        """The first signal stops in good order, the next one at once."""
        stopping.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    def reload() -> None:
        task = asyncio.ensure_future(service.reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, reload)
    starting = asyncio.ensure_future(service.start())
    try:
        await asyncio.wait({starting, asyncio.ensure_future(stopping.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        await stopping.wait()
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await service.stop(service.config.stop_deadline)


COMMAND = Command(
    name="serve",
    summary="Watches engines for ever: remembers, answers over HTTP, alerts.",
    usage="[URL ...] [--config FILE]",
    examples=(
        ("diagnose serve localhost:8000", "one engine; then http://127.0.0.1:9180/api/v1/engines"),
        ("diagnose serve --config diagnoser.yaml", "as configured; SIGHUP reads the file again"),
        ("diagnose serve 10.0.3.7:8000 10.0.3.8:8000 --data /var/lib/diagnoser", "with a history on disk"),
    ),
    options=options,
    run=run,
    details="Stops at SIGTERM or Ctrl-C: what is to be sent is sent first, for ten seconds at most.",
)
