"""YAML of the configuration: plain data, and the line of every path in it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]
_ENV = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class YamlError(Exception):
    """What is wrong and, where known, in which line."""

    def __init__(self, line: int | None, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.line, self.path, self.reason = line, path, reason


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Booleans are true and false, numbers are decimal: yes, on and 12:30 stay texts, as YAML 1.2 has it."""


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"([tT]rue|TRUE|[fF]alse|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(\.[0-9]*([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)$"),
    list("-+0123456789"),
)


@dataclass
class Document:
    """`data` with ${NAME} replaced; `lines` by path; `secrets` are the values that came from the environment."""

    data: Any
    lines: dict[Path, int] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    """Value -> ${NAME}."""

    def hidden(self, text: str) -> str:
        """The text with ${NAME} instead of values from the environment."""
        for value, name in self.secrets.items():
            for spelled in (value, repr(value)[1:-1]):
                text = text.replace(spelled, name) if spelled else text
        return text

    def line(self, path: Path) -> int | None:
        """The line of the path, or of the nearest part around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def read(text: str, environ: Mapping[str, str] = os.environ) -> Document:
    """Parses. Raises YamlError for what is no YAML, a key given twice, an environment variable that is not set."""
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        document = Document(None)
        document.data = {} if root is None else _value(loader, root, (), document, environ)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else None, (), f"not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(None, (), f"not valid YAML: {error}") from None
    finally:
        loader.dispose()
    return document


def _value(loader: Any, node: yaml.Node, path: Path, into: Document, environ: Mapping[str, str]) -> Any:
    into.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, into, environ)
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, one, (*path, place), into, environ) for place, one in enumerate(node.value)]
    value = loader.construct_object(node)
    if isinstance(value, str) and _ENV.search(value):
        return _ENV.sub(lambda match: _from(environ, match[1], node, path, into), value)
    return value


def _mapping(
    loader: Any, node: yaml.MappingNode, path: Path, into: Document, environ: Mapping[str, str]
) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise YamlError(key_node.start_mark.line + 1, path, "a key must be a word")
        key = key_node.value
        if key in out:
            raise YamlError(key_node.start_mark.line + 1, (*path, key), "this key is given twice")
        into.lines[(*path, key)] = key_node.start_mark.line + 1
        out[key] = _value(loader, value_node, (*path, key), into, environ)
    return out


def _from(environ: Mapping[str, str], name: str, node: yaml.Node, path: Path, into: Document) -> str:
    if name not in environ:
        raise YamlError(node.start_mark.line + 1, path, f"the environment variable {name} is not set")
    into.secrets[environ[name]] = f"${{{name}}}"
    return environ[name]


def show(path: Path) -> str:
    """targets[1].interval"""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def parse(text: str) -> Path:
    """The path that `show` wrote."""
    parts = re.findall(r"\[([0-9]+)\]|([^.\[\]]+)", text)
    return tuple(int(number) if number else word for number, word in parts)
