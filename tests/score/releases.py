"""A recording as an older release would have shown it: fewer metrics, under their old names.

Of old releases there are single pages only. A page says which metrics its release has and how they are spelled; the
recording gives the values. So an old release shows less, never something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from bench.fleet.releases import ONCE
from diagnoser.sources.recording import RecordedTarget, open_recording

DIALECTS = Path(__file__).parents[1] / "data" / "dialects"
_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_PARTS = ("", "_total", "_bucket", "_sum", "_count")


def as_release(target: RecordedTarget, release: str) -> RecordedTarget:
    """The recorded target with the metrics of that release only."""
    names = _spelled(release)
    polls = {
        stamp: (kind, _older(load, names) if kind == "prom" else load) for stamp, (kind, load) in target._polls.items()
    }
    return replace(target, _polls=polls)


@cache
def _spelled(release: str) -> Mapping[str, str]:
    """Today's name with underscores -> the release's spelling."""
    (target,) = open_recording(DIALECTS / f"{release}.tar.xz").targets
    lines = "".join(page.text or "" for page in target.pages()).splitlines()
    found = {match[0] for line in lines if (match := _NAME.match(line))}
    return {ONCE.get(plain, plain): name for name in found for plain in (name.replace(":", "_"),)}


def _older(load: Callable[[], bytes], names: Mapping[str, str]) -> Callable[[], bytes]:
    return lambda: "".join(_line(line, names) for line in load().decode().splitlines()).encode()


def _line(line: str, names: Mapping[str, str]) -> str:
    if line.startswith("# TYPE"):
        _, _, name, kind = line.split()
        plain = name.replace(":", "_")
        end = next((end for end in _PARTS if plain + end in names), None)
        return "" if end is None else f"# TYPE {names[plain + end].removesuffix(end)} {kind}\n"
    match = _NAME.match(line)
    known = None if match is None else names.get(match[0].replace(":", "_"))
    return "" if match is None or known is None else f"{known}{line[match.end() :]}\n"
