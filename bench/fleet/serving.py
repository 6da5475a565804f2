"""A fleet in a real server, for benchmarks: made once, kept in a folder, served again in seconds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .members import Settings, members
from .process import Running
from .products import PRODUCTS
from .shots import shots

_ABOUT, _TRUTH, _DATA = "fleet.json", "truth.jsonl", "data"


@dataclass(frozen=True)
class Fleet:
    """A served fleet. Query it at `end`: every engine has been scraped within the interval before."""

    url: str
    end: float
    kind: str
    settings: Settings
    about: Mapping[str, Any]
    """Counts, and what loading it took."""
    folder: Path
    server: Running

    @property
    def truth(self) -> dict[str, dict[str, Any]]:
        """By instance: its labels, what it replays, whether it is bound and by what."""
        with (self.folder / _TRUTH).open() as rows:
            return {row["instance"]: row for row in map(json.loads, rows)}


@contextmanager
def served_fleet(
    kind: str = "victoriametrics", *, keep: Path | str | None = None, flags: Sequence[str] = (), **settings: Any
) -> Iterator[Fleet]:
    """Serves a fleet of `Settings(**settings)` from a real server, until the block ends.

    With `keep`, a folder that holds the fleet is used as it is; one that does not is filled first. Without, everything
    is made in a temporary folder and goes away. `flags` go to the server.
    """
    wish = Settings(**settings)
    with ExitStack() as stack:
        folder = Path(keep) if keep else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-")))
        if not (folder / _ABOUT).exists():
            _make(folder, kind, wish)
        about = json.loads((folder / _ABOUT).read_text())
        if (about["kind"], about["settings"]) != (kind, wish.data()):
            raise ValueError(f"{folder} holds another fleet: {about['kind']} {about['settings']}")
        server = stack.enter_context(PRODUCTS[kind].serve(folder / _DATA, flags))
        yield Fleet(server.url, wish.end, kind, wish, about, folder, server)


@contextmanager
def kept_fleet(folder: Path | str, flags: Sequence[str] = ()) -> Iterator[Fleet]:
    """Serves whatever fleet that folder holds."""
    about = json.loads((Path(folder) / _ABOUT).read_text())
    with served_fleet(about["kind"], keep=folder, flags=flags, **about["settings"]) as fleet:
        yield fleet


def _make(folder: Path, kind: str, settings: Settings) -> None:
    """Fills an empty folder. fleet.json comes last, so a folder that has one is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ValueError(f"{folder} is neither empty nor a complete fleet")
    with (folder / _TRUTH).open("w") as out:
        out.writelines(json.dumps(member.truth) + "\n" for member in members(settings))
    counted = _count(settings)
    measured = PRODUCTS[kind].fill(PRODUCTS[kind], folder / _DATA, settings)
    disk = sum(path.stat().st_blocks * 512 for path in (folder / _DATA).rglob("*"))
    about = {"kind": kind, "settings": settings.data(), **counted, "disk_bytes": disk, **measured}
    (folder / _ABOUT).write_text(json.dumps(about, indent=1) + "\n")


def _count(settings: Settings) -> dict[str, int]:
    series = samples = 0
    for shot in shots(settings):
        series += shot.series
        samples += shot.samples
    return {"series": series, "samples": samples}
