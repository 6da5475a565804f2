"""Panels as text: what golden files hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .judging import Seen

WIDTH = 34


def text_of(told: Sequence[Seen]) -> str:
    """One paragraph a panel."""
    return "\n".join("\n".join(_panel(one)) + "\n" for one in told)


def _panel(seen: Seen) -> Iterator[str]:
    yield f"{seen.uid} / {seen.panel['title']} ({seen.kind})"
    empty = seen.panel["fieldConfig"]["defaults"].get("noValue", "No data")
    if seen.result["numbers"] is not None:
        names = len(seen.result["numbers"]) > 1 or seen.kind != "stat"
        for one in seen.result["numbers"]:
            yield (
                "  " + (f"{one['title']:{WIDTH}}" if names else "") + f"{one['text']:14} {_colour(seen, one)}".rstrip()
            )
    elif seen.kind == "table":
        yield from _table(seen)
    elif not seen.series():
        yield f"  {empty}"
    else:
        for one in seen.series():
            last = next((row for row in reversed(one["rows"]) if row["value"] is not None), {"text": "", "color": ""})
            colour = last["color"] if seen.kind == "state-timeline" else one["mode"]
            yield f"  {one['shown']:{WIDTH}} {last['text']:14} {colour}"


def _colour(seen: Seen, one: Mapping[str, Any]) -> str:
    return "" if seen.panel["options"].get("colorMode") == "none" else str(one["color"])


def _table(seen: Seen) -> Iterator[str]:
    """Sorted as the panel sorts it. A cell that leads somewhere has an arrow."""
    columns = list(seen.fields())
    rows = list(zip(*(one["rows"] for one in columns), strict=True))
    for by in reversed(seen.panel["options"].get("sortBy", [])):
        place = [one["shown"] for one in columns].index(by["displayName"])
        rows.sort(key=lambda row, place=place: row[place]["value"] or 0, reverse=by["desc"])
    cells = [[one["shown"] for one in columns]]
    cells += [[row["text"] + " ->" * bool(row["links"]) for row in each] for each in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
