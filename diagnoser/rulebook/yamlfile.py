"""YAML with line numbers, so that a wrong rule file is reported with the line to look at."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from diagnoser.errors import RuleError

LINE = "__line__"


_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML was built with it (its wheels are): a fifth of the time for the same result."""


class _Loader(_Safe):  # type: ignore[misc]
    """Safe loader whose mappings remember where they begin and refuse a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        twice = next((k for k in keys if keys.count(k) > 1), None)
        if twice is not None:
            raise yaml.MarkedYAMLError(problem=f"key {twice!r} is given twice", problem_mark=node.start_mark)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        mapping[LINE] = node.start_mark.line + 1
        return mapping


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in found if tag != "tag:yaml.org,2002:bool"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
"""yes and no are answers here, not booleans."""


def read(path: Path) -> Any:
    """The file's content; mappings carry their line under "__line__". Raises RuleError."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise RuleError(str(path), f"not valid YAML: {error.problem}", line) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RuleError(str(path), f"cannot be read: {error}") from None


class Entry:
    """A mapping being read: every access names the file and line when it fails, unknown keys are errors."""

    def __init__(self, raw: Any, path: Path, what: str, line: int | None = None) -> None:
        self.path, self.what = path, what
        if not isinstance(raw, dict):
            raise RuleError(str(path), f"{what} must be a mapping, not {type(raw).__name__}", line)
        self.line: int | None = raw.get(LINE, line)
        self.raw = {k: v for k, v in raw.items() if k != LINE}
        self._used: set[str] = set()

    def fail(self, reason: str) -> RuleError:
        """An error at this entry."""
        return RuleError(str(self.path), f"{self.what}: {reason}", self.line)

    def get(self, key: str, default: Any = None) -> Any:
        """The raw value of an optional key."""
        self._used.add(key)
        return self.raw.get(key, default)

    def text(self, key: str, default: str | None = None) -> str:
        """A string; required unless a default is given."""
        value = self.get(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.fail(f"needs `{key}`, a text")
        return value.strip()

    def words(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty if absent."""
        value = self.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.fail(f"`{key}` must be a list of texts")
        return tuple(v.strip() for v in value)

    def one_of(self, key: str, allowed: Iterable[str], default: str | None = None) -> str:
        """A string out of a fixed set."""
        value, choices = self.text(key, default), tuple(allowed)
        if value not in choices:
            raise self.fail(f"`{key}` is {value!r}, must be one of {', '.join(choices)}")
        return value

    def done(self) -> None:
        """No key may be left that nobody asked for: a misspelt key is an error, not silence."""
        left = sorted(set(map(str, self.raw)) - self._used)
        if left:
            raise self.fail(f"unknown key `{left[0]}`")
