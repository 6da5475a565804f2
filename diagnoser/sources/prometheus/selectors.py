"""PromQL text: which series, over which time. Only selectors: whatever is computed is computed here, from raw samples.

Every name is asked for in both spellings, because a scraper may have stored `vllm_x` for `vllm:x`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

SUFFIXES = ("_total", "_bucket", "_sum", "_count")
UP = "up"
SLACK_SECONDS = 0.02
"""Scrapes are stamped in milliseconds: one that belongs to a window's edge may lie this much outside."""


def quoted(text: str) -> str:
    """A PromQL string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def one_of(values: Iterable[str]) -> str:
    """A regular expression (RE2) for exactly these values."""
    return "|".join(re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", value) for value in values)


def names(metrics: Collection[str]) -> str:
    """A matcher of __name__ for these base names in both spellings, with every suffix a series may have."""
    by_prefix: dict[str, list[str]] = {}
    for metric in sorted(metrics):
        prefix, colon, rest = metric.partition(":")
        by_prefix.setdefault(f"{prefix}[:_]" if colon else "", []).append(rest if colon else prefix)
    parts = "|".join(f"{prefix}({one_of(rests)})" for prefix, rests in by_prefix.items())
    return f"__name__=~{quoted(f'({parts})({one_of(SUFFIXES)})?')}"


def with_up(matcher: str) -> str:
    """The same matcher of __name__, and `up`."""
    return matcher.replace('=~"', f'=~"{UP}|', 1)


def selector(*matchers: str) -> str:
    """{a,b,...} of the matchers that are not empty."""
    return "{" + ",".join(matcher for matcher in matchers if matcher) + "}"


def instances(values: Iterable[str]) -> str:
    """A matcher of the label instance; a series without it has the value ""."""
    return f"instance=~{quoted(one_of(sorted(set(values))))}"


def over(seconds: float) -> str:
    """A range."""
    return f"[{max(1, round(seconds * 1000))}ms]"


def user_matchers(texts: Iterable[str]) -> str:
    """What --match gave, with or without braces. The server judges the rest of the syntax."""
    found = (text.strip().removeprefix("{").removesuffix("}").strip(" ,") for text in texts)
    return ",".join(text for text in found if text)
