"""Small pieces of PromQL text."""

from __future__ import annotations

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
