"""The documents name every setting, with its default, and no other; every piece of YAML in them is a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel, TypeAdapter

from diagnoser.service.config import Config
from diagnoser.service.config_base import Bytes, Seconds
from diagnoser.service.config_models import DnsSd, HttpSd, PrometheusSource, TargetGroup
from diagnoser.service.notify.fields import Rate

DOCS = Path(__file__).parents[2] / "docs"
WHOLE, ENTRY = "### The whole", "### An entry of `targets`"


def section(title: str) -> str:
    """The text below that heading of service.md."""
    return (DOCS / "service.md").read_text().partition(f"{title}\n")[2].partition("\n#")[0]


def told(title: str) -> dict[str, str]:
    """key -> default, as the table of that section says; keys that share a row share its commas."""
    found = {}
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|", section(title), re.MULTILINE):
        keys, defaults = re.findall(r"`(\w+)`", row[0]), row[1].split(", ")
        found |= dict(zip(keys, defaults if len(defaults) == len(keys) else [row[1]] * len(keys), strict=True))
    return found


def keys(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def parts(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The model and all below it."""
    yield model
    for field in model.model_fields.values():
        pending: list[Any] = [field.annotation]
        while pending:
            one = pending.pop()
            pending += get_args(one)
            if isinstance(one, type) and issubclass(one, BaseModel):
                yield from parts(one)


def is_default(model: type[BaseModel], key: str, text: str) -> bool:
    """Does the table's word for a default mean the model's?"""
    value = model.model_fields[key].default
    if match := re.fullmatch(r"`(.*)`", text):
        readings = (TypeAdapter(kind) for kind in (Seconds, Bytes, int, str))
        return value in [reading.validate_python(match[1]) for reading in readings if _takes(reading, match[1])]
    return text in ("none", "in memory", "loopback", "text, info") and (not value or isinstance(value, BaseModel))


def _takes(reading: TypeAdapter[Any], text: str) -> bool:
    try:
        reading.validate_python(text)
    except ValueError:
        return False
    return True


def test_the_table_of_the_whole_is_the_model_with_its_defaults() -> None:
    table = told(WHOLE)
    assert table.keys() == keys(Config)
    assert [key for key, text in table.items() if not is_default(Config, key, text)] == []


def test_the_table_of_an_entry_is_the_model_with_its_defaults() -> None:
    table, kinds = told(ENTRY), {"static", "file_sd", "http_sd", "dns", "prometheus"}
    assert table.keys() | kinds == keys(TargetGroup)
    assert [key for key, text in table.items() if not is_default(TargetGroup, key, text)] == []


@pytest.mark.parametrize(("kind", "model"), [("http_sd", HttpSd), ("dns", DnsSd), ("prometheus", PrometheusSource)])
def test_a_source_of_addresses_has_all_its_keys_and_defaults(kind: str, model: type[BaseModel]) -> None:
    text = re.search(rf"^- \*\*{kind}\*\*:(.*?)(?=^- \*\*|\n\n)", section(ENTRY), re.MULTILINE | re.DOTALL)
    assert text is not None
    assert keys(model) <= set(re.findall(r"`(\w+)`", text[1]))
    defaults = re.findall(r"`(\w+)` \((`[^`]+`)", text[1])
    assert [(key, word) for key, word in defaults if key in keys(model) and not is_default(model, key, word)] == []


@pytest.mark.parametrize(
    ("page", "sections"),
    [("service.md", ("history", "log")), ("api.md", ("web",)), ("alerting.md", ("notify", "webhook"))],
)
def test_every_key_of_the_other_sections_is_named(page: str, sections: tuple[str, ...]) -> None:
    text = (DOCS / page).read_text()
    code = " ".join(re.findall(r"```yaml\n.*?```|`[^`\n]+`", text, re.DOTALL))
    models = [type(Config.model_fields[name].default) for name in sections]
    wanted = {key for model in models for part in parts(model) if part is not Rate for key in keys(part)}
    assert sorted(key for key in wanted if not re.search(rf"(?<![\w-]){key}(?!\w)", code)) == []


def pieces() -> list[Any]:
    """Every YAML block of the documents that is (a part of) our configuration."""
    found = []
    for page in ("service.md", "api.md", "alerting.md"):
        for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)):
            data = yaml.safe_load(text)
            if isinstance(data, Mapping) and data.keys() <= keys(Config):
                found.append(pytest.param(data, id=f"{page}-{number}"))
    return found


@pytest.mark.parametrize("data", pieces())
def test_every_example_is_a_configuration(data: dict[str, Any]) -> None:
    for name in (data.get("webhook") or {}).get("forward", ()):  # a receiver of another example
        notify = data.setdefault("notify", {"receivers": []})
        if name not in [one["name"] for one in notify["receivers"]]:
            notify["receivers"].append({"name": name, "webhook": {"url": "http://h"}})
    Config.model_validate(data, context={"folder": DOCS})
