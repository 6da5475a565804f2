"""Reads the configuration file. Every mistake is told at once, with its line and path; secrets are never repeated."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from diagnoser.errors import UsageError
from diagnoser.service.config_models import Config
from diagnoser.service.config_yaml import Document, YamlError, parse, read, show

__all__ = ["Config", "ConfigError", "load"]

MAX_FILE_BYTES = 4 * 2**20


class ConfigError(UsageError):
    """The configuration cannot be used. `problems` are (line or None, path, reason)."""

    def __init__(self, file: str, problems: Sequence[tuple[int | None, str, str]]) -> None:
        self.file, self.problems = file, tuple(problems)
        super().__init__("\n".join(_line(file, *problem) for problem in problems))


def _line(file: str, line: int | None, path: str, reason: str) -> str:
    where = file if line is None else f"{file}:{line}"
    return f"{where}: {path}: {reason}" if path else f"{where}: {reason}"


def load(
    path: Path, environ: Mapping[str, str] = os.environ, adjust: Callable[[Any], None] = lambda data: None
) -> Config:
    """The configuration in that file; relative paths in it are relative to it. Raises ConfigError.

    `adjust` may change the data before it is checked: what the command line says counts more than the file.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(str(path), [(None, "", "is too large for a configuration")])
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(str(path), [(None, "", f"cannot be read: {why}")]) from None
    try:
        document = read(text, environ)
    except YamlError as error:
        raise ConfigError(str(path), [(error.line, show(error.path), error.reason)]) from None
    if isinstance(document.data, dict):
        adjust(document.data)
    return validate(document, str(path), path.parent)


def validate(document: Document, file: str, folder: Path) -> Config:
    """The data as a configuration. Raises ConfigError."""
    try:
        return Config.model_validate(document.data, context={"folder": folder})
    except ValidationError as error:
        found = [_problem(detail, document) for detail in error.errors(include_url=False)]
        found.sort(key=lambda problem: (problem[0] or 0, problem[1]))
        raise ConfigError(file, list(dict.fromkeys(found))) from None


def _problem(detail: ErrorDetails, document: Document) -> tuple[int | None, str, str]:
    path = _real_path(detail["loc"], document.data)
    reason = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        reason = "unknown key"
    elif detail["type"] == "missing":
        reason = "is missing"
    elif match := re.match(r"([a-z_]+(?:\[[0-9]+\]|\.[a-z_]+)+): ", reason):  # a check across parts names its part
        path, reason = (*path, *parse(match[1])), reason[match.end() :]
    return document.line(path), show(path), document.hidden(reason[:1].lower() + reason[1:])


def _real_path(loc: Sequence[str | int], data: Any) -> tuple[str | int, ...]:
    """The path in the file: pydantic adds names of types where several are possible."""
    path: list[str | int] = []
    for place, part in enumerate(loc):
        if isinstance(data, dict) and (part in data or place == len(loc) - 1):
            path.append(part)
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            path.append(part)
            data = data[part]
    return tuple(path)
