"""The command `diagnose`: finds the sub-command, runs it, and turns every error into one sentence and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from diagnoser import __version__
from diagnoser.commands import NAMES, command
from diagnoser.commands.base import EX_USAGE, EXIT_CODES, parser_of, say
from diagnoser.errors import DiagnoserError, FactsError, UsageError

EX_UNKNOWN = 3
EX_INTERRUPTED = 130
EX_BROKEN_PIPE = 141
HELP = """\
usage: diagnose URL [URL ...] [options]
       diagnose --prometheus URL [options]
       diagnose COMMAND ...

Names the gate that keeps requests waiting in a vLLM or SGLang engine, with
proof: KV space, slots, prefill, something outside; and whether more host cache
(L2) would help.

examples:
  diagnose demo
      a recorded incident, served over HTTP and diagnosed live
  diagnose 10.0.3.7:8000 10.0.3.8:8000
      sample live engines for 30 s, then the verdict and the checklist
  diagnose replay incident.tar.gz
      the same for what `diagnose record` has recorded

commands:
{commands}

  diagnose COMMAND --help    options and examples of a command
  diagnose URL --help        options for sampling live engines
  diagnose --prometheus URL --help
                             for the engines that a Prometheus scrapes
  diagnose --version

{codes}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code, raises nothing."""
    if argv is None:
        signal.signal(signal.SIGTERM, _terminated)
    words = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: run(words))


def _terminated(number: int, frame: FrameType | None) -> None:
    """Ends as Ctrl-C does. The first process of a container gets no signal that it has no handler for."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell's background jobs have it
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def run(words: Sequence[str]) -> int:
    """Parses and dispatches; errors go up."""
    if not words or words[0] in ("-h", "--help", "help"):
        print(help_text(), end="")
        return 0
    if words[0] in ("-V", "--version"):
        print(f"diagnose {__version__}")
        return 0
    name, rest = (words[0], words[1:]) if words[0] in NAMES else (_nameless(words), words)
    chosen = command(name)
    parser = parser_of(chosen)
    try:
        parsed = parser.parse_args(rest)
    except UnicodeDecodeError:
        raise UsageError("a file of arguments (@FILE) is not UTF-8 text") from None
    return chosen.run(parsed)


def _nameless(words: Sequence[str]) -> str:
    """What runs without a name: live engines, or those that a metrics server knows."""
    return "prometheus" if any(word.split("=")[0] == "--prometheus" for word in words) else "live"


def help_text() -> str:
    """What `diagnose` alone prints."""
    commands = "\n".join(f"  {name:<10} {command(name).summary}" for name in NAMES)
    return HELP.format(commands=commands, codes=EXIT_CODES)


def guarded(work: Callable[[], int]) -> int:
    """Runs `work`; whatever it raises becomes one sentence and an exit code. DIAGNOSE_DEBUG=1 shows the traceback."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has gone (`| head`). Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EX_BROKEN_PIPE
    except KeyboardInterrupt:
        return EX_INTERRUPTED
    except SystemExit as stop:  # argparse after --help
        return stop.code if isinstance(stop.code, int) else 0
    except DiagnoserError as error:
        _trace()
        say(str(error))
        return EX_USAGE if isinstance(error, UsageError | FactsError) else EX_UNKNOWN
    except Exception as error:
        _trace()
        kind = type(error).__name__
        say(f"internal error ({kind}: {error}). This is a bug in diagnose: please report it with DIAGNOSE_DEBUG=1 set.")
        return EX_UNKNOWN


def _trace() -> None:
    if os.environ.get("DIAGNOSE_DEBUG"):
        import traceback

        traceback.print_exc()
