"""Facts that a person gives, as flags or in a file: names checked, values typed, each with its origin."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from diagnoser.errors import FactsError
from diagnoser.model import Fact

TEXT_FACTS = frozenset({"version", "model"})
"""Facts that stay text even where they look like a number: version 0.9."""
_NUMBERS = re.compile(
    r"(max|num|hicache)_.*|.*_(size|tokens|ratio|bytes|blocks|len|concurrency|interval|utilization|conservativeness)|watermark"
)
"""Facts that can only be numbers."""
ENGINE_SPELLINGS: Mapping[str, str] = {
    "context_length": "max_model_len",
    "data_parallel_size": "dp_size",
    "hicache_host_memory_mode": "l2_memory_mode",
    "hicache_write_policy": "l2_write_policy",
    "kv_cache_dtype": "cache_dtype",
    "pipeline_parallel_size": "pp_size",
    "schedule_policy": "scheduling_policy",
    "tensor_parallel_size": "tp_size",
}
"""Flags of the engines that we call by one name for all engines."""


def facts_of(files: Sequence[str], flags: Sequence[str], known: Iterable[str]) -> tuple[dict[str, Fact], list[str]]:
    """Facts of files, then of flags (which win), and warnings about what a file holds that nobody uses.

    Raises FactsError for a file or flag that cannot be read, and for a flag with an unknown name.
    """
    names = tuple(known)
    facts: dict[str, Fact] = {}
    warnings: list[str] = []
    for path in files:
        found = {ENGINE_SPELLINGS.get(key, key): raw for key, raw in _file(path).items()}
        unused = [key for key in found if key not in names]
        facts.update(_typed((key, raw, f"--facts {path}") for key, raw in found.items() if key in names))
        warnings += [_unused(path, unused, names)] if unused else []
    facts.update(_typed((*_flag(flag, names), "--fact") for flag in flags))
    return facts, warnings


def _flag(flag: str, names: Sequence[str]) -> tuple[str, str]:
    key, given, raw = flag.partition("=")
    name = ENGINE_SPELLINGS.get(key.strip(), key.strip())
    if not given or not raw.strip():
        raise FactsError(f"--fact {flag!r}: write name=value, for example --fact max_num_seqs=64.")
    if name not in names:
        raise FactsError(f"--fact {name}: no such fact{_close(name, names)}; `diagnose explain facts` lists all.")
    return name, raw.strip()


def _typed(given: Iterable[tuple[str, object, str]]) -> dict[str, Fact]:
    return {name: fact for name, raw, origin in given if (fact := _fact(name, raw, origin)) is not None}


def _file(path: str) -> Mapping[str, object]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FactsError(f"{path}: the facts file cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise FactsError(f'{path}: not JSON ({error}); write {{"facts": {{"max_num_seqs": 64}}}}.') from None
    if isinstance(found, dict) and isinstance(found.get("facts"), dict):
        found = found["facts"]
    if not isinstance(found, dict):
        raise FactsError(f'{path}: holds no mapping; write {{"facts": {{"max_num_seqs": 64}}}}.')
    return found


def _fact(name: str, raw: object, origin: str) -> Fact | None:
    """A fact with its value typed; None for what is unset (null)."""
    if raw is None:
        return None
    if isinstance(raw, bool):
        return Fact(name, raw, origin)
    if isinstance(raw, dict | list):
        raise FactsError(f"{origin}: {name} is a structure; give a number, a text, true or false.")
    text = str(raw).strip()
    if name in TEXT_FACTS:
        return Fact(name, text, origin)
    if text.lower() in ("true", "false"):
        return Fact(name, text.lower() == "true", origin)
    try:
        number = float(text.replace("_", "")) if re.match(r"[-+.0-9]", text) else None
    except ValueError:
        number = None
    if number is not None and (not math.isfinite(number) or number < 0) and name != "sliding_window":
        raise FactsError(f"{origin}: {name}={text} is impossible; give a number of 0 or more.")
    if number is None and _NUMBERS.fullmatch(name):
        raise FactsError(f"{origin}: {name}={text} is no number.")
    return Fact(name, text if number is None else number, origin)


def _unused(path: str, unused: Sequence[str], names: Sequence[str]) -> str:
    shown = ", ".join(f"{name}{_close(name, names)}" for name in unused[:4])
    more = f" and {len(unused) - 4} more" if len(unused) > 4 else ""
    return f"{path}: not used: {shown}{more}. `diagnose explain facts` lists what is."


def _close(name: str, names: Sequence[str]) -> str:
    found = difflib.get_close_matches(name, names, 2, 0.6)
    return f" (did you mean {' or '.join(found)}?)" if found else ""
