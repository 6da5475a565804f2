"""Writes recordings, see recording.py for the format. An interrupted one stays readable.

Pages go one by one into a folder; an archive is packed from that folder at the end. Whatever stops the process before,
`<path>.partial` is a recording itself.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from diagnoser.errors import RecordingError

_Mode = Literal["w", "w:gz", "w:xz"]
_MODES: tuple[tuple[str, _Mode], ...] = (
    (".tar.gz", "w:gz"),
    (".tgz", "w:gz"),
    (".tar.xz", "w:xz"),
    (".txz", "w:xz"),
    (".tar", "w"),
)


class RecordingWriter:
    """Records `targets` (their names) into `path`: an archive by its suffix, else a new folder. For use by one task.

    Every method raises RecordingError if the disk refuses. Use as a context manager or call `close`.
    """

    def __init__(self, path: str | Path, targets: Iterable[str], *, poll_interval_seconds: float) -> None:
        self.path = Path(path)
        self._mode = next((mode for suffix, mode in _MODES if self.path.name.lower().endswith(suffix)), None)
        self._folder = self.path if self._mode is None else Path(f"{self.path}.partial")
        self._places = _places(self._folder, tuple(targets))
        self._meta: dict[str, dict[str, str | float]] = {
            name: {"target": name, "poll_interval_seconds": poll_interval_seconds} for name in self._places
        }
        self._closed = False
        for existing in (self.path, self._folder):
            if existing.exists():
                raise RecordingError(f"{existing}: exists already; choose another file, or move it away.")
        try:
            for name, place in self._places.items():
                place.mkdir(parents=True)
                self._write_meta(name)
        except OSError as error:
            raise self._refused(error) from error

    def describe(
        self, target: str, *, engine: str | None = None, version: str | None = None, model: str | None = None
    ) -> None:
        """Add what is known of the engine to the target's meta.json; None leaves what is there."""
        identity = {"engine": engine, "version": version, "model": model}
        known = {key: value for key, value in identity.items() if value is not None}
        if self._meta[target].items() >= known.items():
            return
        self._meta[target].update(known)
        try:
            self._write_meta(target)
        except OSError as error:
            raise self._refused(error) from error

    def write_page(self, target: str, at: float, body: bytes) -> None:
        """Keep a page as served (decompressed), scraped at `at` unix seconds."""
        self._write(target, at, "prom", body)

    def write_error(self, target: str, at: float, reason: str) -> None:
        """Keep that the scrape at `at` failed, and why."""
        self._write(target, at, "error", (reason + "\n").encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        """Pack the archive, then remove the folder. Safe to call twice; if packing fails the folder stays."""
        if self._closed:
            return
        self._closed = True
        if self._mode is None:
            return
        unfinished = Path(f"{self.path}.tmp")
        try:
            self._pack(unfinished, self._mode)
            os.replace(unfinished, self.path)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise RecordingError(
                f"{self.path}: cannot be packed ({error.strerror}); all pages are in {self._folder}, "
                "which can be replayed as it is."
            ) from error
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pack(self, path: Path, mode: _Mode) -> None:
        with tarfile.open(path, mode) as archive:
            for file in sorted(self._folder.rglob("*")):
                if file.is_file():
                    archive.add(file, file.relative_to(self._folder).as_posix(), filter=_anonymous)

    def _write(self, target: str, at: float, kind: str, body: bytes) -> None:
        # Two polls in one millisecond, or a clock set back, must not overwrite a page.
        stamp = max(round(at * 1000), 0)
        while any((self._places[target] / f"{stamp}.{other}").exists() for other in ("prom", "error")):
            stamp += 1
        try:
            _replace(self._places[target] / f"{stamp}.{kind}", body)
        except OSError as error:
            raise self._refused(error) from error

    def _write_meta(self, target: str) -> None:
        _replace(self._places[target] / "meta.json", json.dumps(self._meta[target], indent=1).encode() + b"\n")

    def _refused(self, error: OSError) -> RecordingError:
        return RecordingError(f"{self.path}: cannot be written ({error.strerror}); check folder and free space.")


def _places(folder: Path, targets: tuple[str, ...]) -> dict[str, Path]:
    """Where each target's pages go: the folder itself for one, a sub-folder each for several."""
    if len(targets) == 1:
        return {targets[0]: folder}
    places: dict[str, Path] = {}
    for name in targets:
        base = re.sub(r"[^a-zA-Z0-9._-]+", "_", name).strip(".") or "target"
        used, number, chosen = set(places.values()), 2, base
        while folder / chosen in used:
            chosen, number = f"{base}-{number}", number + 1
        places[name] = folder / chosen
    return places


def _replace(path: Path, body: bytes) -> None:
    """Write in one step, so that a killed process leaves no half page."""
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_bytes(body)
    os.replace(unfinished, path)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Who recorded on which account is nobody's business."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member
