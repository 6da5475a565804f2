"""On a real terminal (a pty): colour unless it is not wanted, the size of the screen, progress on stderr only."""

from __future__ import annotations

import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from fcntl import ioctl

import pytest

from .conftest import FAST, PREEMPTING, SLOW


def on_terminal(*words: str, env: Mapping[str, str] | None = None, rows: int = 24, columns: int = 80) -> str:
    """What the command writes to a terminal of that size, stdout and stderr."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    argv = [sys.executable, "-m", "diagnoser", *words]
    full = {**clean, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **(env or {})}
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=full) as process:
        os.close(theirs)
        out = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            out += chunk
        process.wait(timeout=30)
    os.close(ours)
    return out.decode("utf-8").replace("\r\n", "\n")


def test_colour_on_a_terminal() -> None:
    assert "\x1b[1;31m" in on_terminal("replay", str(PREEMPTING), "--last")


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_it_is_not_wanted(env: Mapping[str, str]) -> None:
    out = on_terminal("replay", str(PREEMPTING), "--last", env=env)
    assert "\x1b" not in out and "L1-BOUND" in out


def test_the_screen_decides_how_much_is_shown() -> None:
    small = on_terminal("replay", str(PREEMPTING), "--last", env={"NO_COLOR": "1"})
    large = on_terminal("replay", str(PREEMPTING), "--last", env={"NO_COLOR": "1"}, rows=80, columns=120)
    assert len(small.splitlines()) <= 23 and "Do, in this order" not in small
    assert "Do, in this order" in large and max(map(len, large.splitlines())) > 80


def test_progress_while_sampling(engine: Callable[..., str]) -> None:
    out = on_terminal(engine(PREEMPTING, speed=SLOW, since=30.0), *FAST)
    assert "sampling" in out and "pages" in out and "L1-BOUND" in out


def test_watch_draws_a_table(engine: Callable[..., str]) -> None:
    out = on_terminal(
        "watch", engine(PREEMPTING, speed=SLOW, since=30.0), *FAST, "--refresh", "200ms", "--duration", "1s"
    )
    assert "1 engine, window" in out and "closed" in out and "L1-BOUND" in out
