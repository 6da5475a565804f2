"""Log lines on stderr: for people, or one JSON object a line. Nothing here is ever given a secret."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from diagnoser.service.config_models import LogSettings

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def _extras(record: logging.LogRecord) -> dict[str, object]:
    """What a line was given beside its message."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonLines(logging.Formatter):
    """{"time": ..., "level": ..., "logger": ..., "message": ..., extras}."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """time level logger: message key=value ..."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback follows on its own lines."""
        extras = " ".join(f"{key}={_word(value)}" for key, value in _extras(record).items())
        message = record.getMessage().replace("\n", " | ")
        line = f"{_time(record)} {record.levelname.lower():<7} {record.name}: {message} {extras}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _word(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or set(text) & set(' "\n=') else text


def set_up(settings: LogSettings) -> None:
    """All logs of the process go to stderr in that form; may be called again."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    logging.basicConfig(handlers=[handler], level=settings.level.upper(), force=True)
    for chatty in ("httpx", "httpcore", "uvicorn", "apprise", "requests", "urllib3", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
