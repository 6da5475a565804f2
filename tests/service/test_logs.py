"""Log lines: one object or one sentence a line, whatever is in them."""

from __future__ import annotations

import json
import logging

from diagnoser.service.logs import JsonLines, TextLines


def record(message: str, *args: object, **extras: object) -> logging.LogRecord:
    made = logging.LogRecord("diagnoser.poller", logging.WARNING, "", 0, message, args, None)
    made.created = 1_795_976_000.5
    vars(made).update(extras)
    return made


def test_a_line_for_programs() -> None:
    line = JsonLines().format(record("target fails: %s", "no\nanswer", target="a:1", seconds=0.5))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-11-29T18:13:20.500Z",
        "level": "warning",
        "logger": "diagnoser.poller",
        "message": "target fails: no\nanswer",
        "target": "a:1",
        "seconds": 0.5,
    }


def test_a_line_for_people() -> None:
    line = TextLines().format(record("fails: %s", "no\nanswer", target="a b", empty="", n=3))
    assert line == '2026-11-29T18:13:20.500Z warning diagnoser.poller: fails: no | answer target="a b" empty="" n=3'


def test_tracebacks_are_kept() -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        made = record("broken")
        made.exc_info = (ValueError, error, error.__traceback__)
    assert "ValueError: why" in json.loads(JsonLines().format(made))["exception"]
    assert TextLines().format(made).splitlines()[-1] == "ValueError: why"
