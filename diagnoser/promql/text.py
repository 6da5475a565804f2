"""Small pieces of PromQL text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection


def quoted(text: str) -> str:
    """A PromQL string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def duration(seconds: float) -> str:
    """A PromQL duration."""
    millis = max(1, round(seconds * 1000))
    return f"{millis // 1000}s" if millis % 1000 == 0 else f"{millis}ms"


def name_matcher(metrics: Collection[str]) -> str:
    """A matcher of __name__ in both spellings: a list of literals, which servers look up without scanning."""
    spelled = [name for metric in metrics for name in dict.fromkeys((metric, metric.replace(":", "_", 1)))]
    if len(spelled) == 1:
        return f'__name__="{spelled[0]}"'
    return f'__name__=~"{"|".join(spelled)}"'


def one_of(values: Collection[str]) -> str:
    """A regular expression for these values; common beginnings are written once, as addresses are alike.

    Short rather than exact: a dot matches any character. What is matched beside them is only asked for in vain.
    """
    return _alternatives(sorted(set(values)))


def _alternatives(values: list[str]) -> str:
    if len(values) == 1:
        return _escaped(values[0])
    first, last = values[0], values[-1]  # sorted: what these two share, all share
    shared = first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
    by_next: dict[str, list[str]] = defaultdict(list)
    for value in values:
        rest = value[len(shared) :]
        by_next[rest[:1]].append(rest)
    parts = [_alternatives(group) for group in by_next.values()]
    return f"{_escaped(shared)}({'|'.join(parts)})"


def _escaped(text: str) -> str:
    """RE2 needs a backslash before its own characters only."""
    return re.sub(r"([\\+*?()|\[\]{}^$])", r"\\\1", text)


def ones(text: str) -> str:
    """1 for every element. Not `^ 0`: of an element that is missing, VictoriaMetrics 1.79 makes 1 in a range query."""
    return f"group without () ({text})"
