"""What a person types, as values: durations, moments, facts, headers. A mistake is a sentence with the right form."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from diagnoser.errors import FactsError, UsageError
from diagnoser.model import Fact

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}
_DURATION = re.compile(r"([0-9]*\.?[0-9]+) *(ms|s|min|m|h|)")
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


def duration(text: str) -> float:
    """Seconds in "30s", "2m", "1.5h", "500ms" or "30"."""
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds < 1e9:
        raise UsageError(f"{text!r} is no duration: write 30s, 2m, 500ms or a number of seconds above 0")
    return seconds


def moment(text: str, first: float, last: float) -> float:
    """Unix seconds in "1795976065", "+90s" (after the first page), "02:14:05" (UTC) or "2026-11-29T02:14:05Z"."""
    text = text.strip()
    if text.startswith("+"):
        at = first + duration(text[1:])
    elif re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        at = float(text)
    elif match := re.fullmatch(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?Z?", text):
        at = _on_the_day(first, int(match[1]), int(match[2]), int(match[3] or 0))
    else:
        at = _iso(text)
    if not first <= at <= last + 1:
        span = f"{_clock(first)} to {_clock(last)}"
        raise UsageError(
            f"--at {text}: the recording goes from {span} (UTC); give a time inside, or +30s after its start."
        )
    return at


def _on_the_day(first: float, hour: int, minute: int, second: int) -> float:
    """That time of day, at or after the first page."""
    start = datetime.fromtimestamp(first, UTC)
    wanted = start.replace(hour=hour % 24, minute=minute % 60, second=second % 60, microsecond=0)
    found = wanted if wanted >= start.replace(microsecond=0) else wanted + timedelta(days=1)
    return max(found.timestamp(), first)


def _iso(text: str) -> float:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(
            f"--at {text!r} is no time: write 02:14:05, 2026-11-29T02:14:05Z, +90s or unix seconds."
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---------------------------------------------------------------- facts


def facts_of(files: Sequence[str], flags: Sequence[str], known: Iterable[str]) -> tuple[dict[str, Fact], list[str]]:
    """Facts of files, then of flags (which win), and warnings about what a file holds that nobody uses.

    Raises FactsError for a file or flag that cannot be read, and for a flag with an unknown name.
    """
    names = tuple(known)
    facts: dict[str, Fact] = {}
    warnings: list[str] = []
    for path in files:
        unused = []
        for key, raw in _file(path).items():
            name = ENGINE_SPELLINGS.get(key, key)
            if name not in names:
                unused.append(key)
                continue
            fact = _fact(name, raw, f"--facts {path}")
            facts.update({} if fact is None else {name: fact})
        warnings += [_unused(path, unused, names)] if unused else []
    for flag in flags:
        key, given, raw = flag.partition("=")
        name = ENGINE_SPELLINGS.get(key.strip(), key.strip())
        if not given or not raw.strip():
            raise FactsError(f"--fact {flag!r}: write name=value, for example --fact max_num_seqs=64.")
        if name not in names:
            raise FactsError(f"--fact {name}: no such fact{_close(name, names)}; `diagnose explain facts` lists all.")
        fact = _fact(name, raw.strip(), "--fact")
        facts.update({} if fact is None else {name: fact})
    return facts, warnings


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


# ---------------------------------------------------------------- headers


def headers_of(flags: Sequence[str], files: Sequence[str]) -> dict[str, str]:
    """Headers of "Name: value" flags and of files with one a line. Errors never repeat a value: it may be a secret."""
    lines = [("--header", flag) for flag in flags]
    for path in files:
        try:
            content = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"--header-file {path}: cannot be read as text.") from None
        lines += [(f"--header-file {path}", line) for line in content.splitlines() if line.strip() and line[0] != "#"]
    found = {}
    for origin, line in lines:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name.strip()) or not value.strip():
            raise UsageError(f"{origin}: write 'Name: value', for example 'Authorization: Bearer TOKEN'.")
        found[name.strip()] = value.strip()
    return found
