"""What a sub-command is, and the options that several share. Imports neither pipeline, httpx, pandas nor rich."""

from __future__ import annotations

import argparse
import shlex
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, NoReturn

from diagnoser import config
from diagnoser.errors import UsageError

EX_USAGE = 64
EXIT_CODES = """\
exit codes: 0 no bottleneck, 1 warning, 2 critical, 3 unknown or unreachable,
64 usage error. Of several engines the worst counts, in the order critical,
unreachable, warning, unknown, none. --exit-zero turns 1, 2 and 3 into 0."""
WIDTH = 79


@dataclass(frozen=True, slots=True)
class Command:
    """One sub-command: diagnoser/commands/<name>.py with COMMAND = Command(...)."""

    name: str
    summary: str
    """One line for the list of commands."""
    usage: str
    """Arguments for the usage line, without options."""
    examples: tuple[tuple[str, str], ...]
    """(command line, what it does)"""
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    details: str = ""


class Parser(argparse.ArgumentParser):
    """argparse with 64 as the exit code of a usage error, and one sentence instead of the whole usage.

    `@FILE` stands for the arguments in a file: addresses, --l2, facts, as on a command line; # begins a comment.
    """

    def convert_arg_line_to_args(self, arg_line: str) -> list[str]:
        """The arguments of one line of such a file."""
        try:
            return shlex.split(arg_line, comments=True)
        except ValueError as error:
            raise UsageError(f"a file of arguments has the line {arg_line!r}: {error}") from None

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (`{self.prog} --help` shows how it is used)")


def parser_of(command: Command) -> Parser:
    """The parser of one command with its examples."""
    prog = f"diagnose {command.name}".rstrip()
    examples = "\n".join(f"  {line}\n      {what}" for line, what in command.examples)
    parts = (textwrap.fill(part, WIDTH) for part in (command.summary, command.details) if part)
    description = "\n\n".join(parts)
    parser = Parser(
        prog=prog,
        usage=f"{prog} {command.usage} [options]",
        description=description,
        allow_abbrev=False,
        fromfile_prefix_chars="@",
        epilog=f"examples:\n{examples}",
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=WIDTH),
    )
    command.options(parser)
    return parser


# ---------------------------------------------------------------- types of arguments


def duration(text: str) -> float:
    """A duration as argparse type."""
    try:
        return config.duration(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text: str) -> float:
    """A factor above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def port(text: str) -> int:
    """A TCP port; 0 lets the system choose one."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give 0 to 65535")
    return int(text)


# ---------------------------------------------------------------- groups of options


def add_window(parser: argparse.ArgumentParser, window: str = "30s") -> None:
    """How long to sample, how often, how long to wait for an answer."""
    group = parser.add_argument_group("sampling")
    group.add_argument(
        "--window",
        type=duration,
        default=duration(window),
        metavar="30s",
        help=f"what a verdict is about (default {window}); also 2m, 500ms or plain seconds",
    )
    add_interval(group)


def add_interval(group: argparse._ArgumentGroup) -> None:
    """How often to sample and how long to wait for an answer."""
    group.add_argument(
        "--interval", type=duration, default=1.0, metavar="1s", help="time between two pages (default 1s)"
    )
    group.add_argument(
        "--timeout",
        type=duration,
        default=5.0,
        metavar="5s",
        help="longest wait for one page, from connecting to its last byte (default 5s)",
    )


def add_http(parser: argparse.ArgumentParser) -> None:
    """Headers for engines behind a token."""
    group = parser.add_argument_group("http")
    group.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'Name: value'",
        help="sent with every request, such as 'Authorization: Bearer TOKEN'; may be repeated",
    )
    group.add_argument(
        "--header-file",
        action="append",
        default=[],
        metavar="FILE",
        help="the same from a file, one header a line, so that no token shows in the process list",
    )


L2_HELP = """\
a page of a host tier (LMCache server, Mooncake master, KVBM) beside the engines; may be repeated. It serves the
engines on its host, else all; ENGINE=URL names one. If it does not answer, only the state of L2 is unknown"""


def add_l2(parser: argparse.ArgumentParser, what: str, metavar: str) -> None:
    """Pages of host tiers at addresses of their own."""
    parser.add_argument("--l2", action="append", default=[], metavar=metavar, help=what)


def add_facts(parser: argparse.ArgumentParser) -> None:
    """Facts and rules."""
    group = parser.add_argument_group("what you know")
    group.add_argument(
        "--fact",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that no page shows, such as max_num_seqs=64 (`diagnose explain facts`); may be repeated",
    )
    group.add_argument(
        "--facts",
        action="append",
        default=[],
        metavar="FILE",
        help='the same from a JSON file: {"facts": {"max_num_seqs": 64}}',
    )
    group.add_argument(
        "--rules",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of your own rules and thresholds on top of the shipped ones; may be repeated",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Format, verbosity, exit code."""
    from diagnoser.outputs import outputs

    group = parser.add_argument_group("output")
    names = tuple(outputs())
    group.add_argument("--format", choices=names, default=names[0], help=f"default {names[0]}")
    group.add_argument("-v", "--verbose", action="store_true", help="every check, signal and fact with its origin")
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever the verdict")
    parser.epilog = f"{parser.epilog}\n\n{EXIT_CODES}"


# ---------------------------------------------------------------- talking


def say(message: str) -> None:
    """One line for the person at the terminal, on stderr."""
    print(f"diagnose: {printable(message, sys.stderr)}", file=sys.stderr, flush=True)


def say_all(messages: Sequence[str]) -> None:
    """Several."""
    for message in messages:
        say(message)


def printable(text: str, stream: IO[str]) -> str:
    """Text that the stream can encode and that cannot steer a terminal."""
    from diagnoser.outputs.words import clean

    encoding = getattr(stream, "encoding", None) or "ascii"
    return "\n".join(map(clean, text.split("\n"))).encode(encoding, "replace").decode(encoding)
