"""A Hugging Face config.json as typed fields under any of their names; what is missing is named in the error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnoser.errors import CapacityError

CLASS_DEFAULTS: dict[str, dict[str, Any]] = {
    "gemma": {"tie_word_embeddings": True}, "gemma2": {"tie_word_embeddings": True},
    "gemma3_text": {"tie_word_embeddings": True, "vocab_size": 262_208, "max_position_embeddings": 131_072},
    "llama4_text": {"attention_chunk_size": 8192},
}
"""What published configs of a model type leave to transformers' config class (5.19)."""
NESTED = ("text_config", "llm_config", "language_config", "decoder", "thinker_config")


@dataclass(frozen=True, slots=True)
class Fields:
    """The language model's part of a config. `outer` is the whole file: architectures and quantisation stand there."""

    name: str
    inner: Mapping[str, Any]
    outer: Mapping[str, Any]

    def get(self, *names: str) -> Any:
        """The first of these fields that is set (null counts as not set), else None."""
        return next((self.inner[name] for name in names if self.inner.get(name) is not None), None)

    def anywhere(self, *names: str) -> Any:
        """As get, then the same in the outer part."""
        found = self.get(*names)
        return Fields(self.name, self.outer, self.outer).get(*names) if found is None else found

    def number(self, *names: str) -> int | None:
        """A field that must be a whole number, else None."""
        value = self.get(*names)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise CapacityError(f"{self.name}: field {names[0]} is {value!r}, a whole number is needed")
        return value

    def need(self, *names: str, why: str) -> int:
        """A whole number that must be there, or an error that names it."""
        value = self.number(*names)
        if value is None:
            other = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
            raise CapacityError(f"{self.name}: config has no field {names[0]}{other}; it is needed for {why}")
        return value

    @property
    def model_type(self) -> str:
        """The `model_type` of the language model, lower case, "" if there is none."""
        return str(self.get("model_type") or self.outer.get("model_type") or "").lower()

    @property
    def architecture(self) -> str:
        """The first of `architectures`, "" if there is none."""
        names = self.anywhere("architectures")
        return str(names[0]) if isinstance(names, list) and names else ""


def fields_of(config: Mapping[str, Any], name: str) -> Fields:
    """The fields of a config, descending into text_config and its like as long as the layers are not at the top."""
    inner: Mapping[str, Any] = config
    while not any(key in inner for key in ("num_hidden_layers", "n_layer", "num_layers", "decoder_layers")):
        nested = next((inner[key] for key in NESTED if isinstance(inner.get(key), Mapping)), None)
        if nested is None:
            break
        inner = nested
    defaults = CLASS_DEFAULTS.get(str(inner.get("model_type")), {})
    return Fields(name, {**defaults, **inner}, config)


def load_fields(path: Path) -> Fields:
    """The fields of a config.json, or of the one in a model folder."""
    file = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CapacityError(f"{file}: cannot be read: {error}") from error
    except ValueError as error:
        raise CapacityError(f"{file}: is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise CapacityError(f"{file}: is no config.json: an object is needed")
    return fields_of(config, str(path))
