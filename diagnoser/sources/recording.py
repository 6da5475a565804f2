"""Recordings: scraped pages kept as files, in a folder or a tar archive.

`<unix ms>.prom` is a page byte for byte, `<unix ms>.error` says why a scrape failed, meta.json tells the engine.
Several targets have one sub-folder each. Nothing is ever unpacked to disk.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from diagnoser.errors import RecordingError
from diagnoser.sources.base import MAX_PAGE_BYTES, decode_page

MAX_ARCHIVE_BYTES = 2 * 1024**3
"""How much of an archive is decompressed at most: ten hours of one engine at one page a second."""
META_KEYS = ("engine", "version", "model", "target", "poll_interval_seconds")
"""Identity only. A recording may also hold facts, load and scenario: answers, which a diagnosis must not see."""

_PAGE_NAME = re.compile(r"([0-9]{1,15})\.(prom|error)")
# All that the standard library says to a damaged archive.
_DAMAGE = (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error, ValueError)
_ADVICE = "give a folder or a .tar, .tar.gz or .tar.xz file as written by `diagnose record`."
_Load = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """One poll at `at` (unix seconds): either the page's `text` or `error`, one sentence why there is none."""

    at: float
    text: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class RecordedTarget:
    """The polls of one target, read when asked for. `meta` has META_KEYS only."""

    name: str
    meta: Mapping[str, str | float]
    _polls: Mapping[int, tuple[str, _Load]] = field(repr=False)

    def __len__(self) -> int:
        return len(self._polls)

    @property
    def times(self) -> tuple[float, ...]:
        """Unix seconds of every poll, ascending, each once."""
        return tuple(stamp / 1000 for stamp in sorted(self._polls))

    def pages(self) -> Iterator[RecordedPage]:
        """Every poll in time order. A page that cannot be read is an error page: never raises."""
        for stamp in sorted(self._polls):
            kind, load = self._polls[stamp]
            try:
                text = decode_page(load())
            except (OSError, RecordingError) as error:
                yield RecordedPage(stamp / 1000, None, f"the recorded page cannot be read ({error}).")
                continue
            if kind == "prom":
                yield RecordedPage(stamp / 1000, text, None)
            else:
                yield RecordedPage(stamp / 1000, None, _failure(text))


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that was opened. `warnings` are sentences about what was left out."""

    path: Path
    targets: tuple[RecordedTarget, ...]
    warnings: tuple[str, ...] = ()


def open_recording(path: str | Path, max_bytes: int = MAX_ARCHIVE_BYTES) -> Recording:
    """Open a folder, .tar, .tar.gz/.tgz or .tar.xz/.txz. RecordingError if there is no page to be had from it.

    An archive is held in memory, compressed page by page; of one that unpacks to more than `max_bytes` the beginning.
    What is unreadable in it is left out with a warning.
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f"{path}: no such recording; {_ADVICE}")
    content = _Content(path, max_bytes)
    if path.is_dir():
        content.read_folder()
    else:
        content.read_archive()
    return content.recording()


class _Content:
    """What was found so far, by folder: polls by time, identity, and what was not usable."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self.max_bytes = path, max_bytes
        self.polls: dict[PurePosixPath, dict[int, tuple[str, _Load]]] = {}
        self.meta: dict[PurePosixPath, dict[str, str | float]] = {}
        self.ignored: Counter[str] = Counter()
        self.warnings: list[str] = []

    def read_folder(self) -> None:
        try:
            # One folder a target and one around them; "**" would search a whole disk after a slip of the user.
            for file in sorted(file for depth in ("*", "*/*", "*/*/*") for file in self.path.glob(depth)):
                if file.is_file():
                    name = PurePosixPath(file.relative_to(self.path).as_posix())
                    self.add(name, lambda file=file: _read_file(file))  # type: ignore[misc]
        except OSError as error:
            raise RecordingError(f"{self.path}: cannot be read ({error.strerror}); check its permissions.") from error

    def read_archive(self) -> None:
        try:
            with _unpacked(self.path) as stream:
                self._read_tar(_Counted(stream, self.max_bytes))
        except _TooLarge:
            size = f"{self.max_bytes / 2**30:g} GiB"
            self.warnings.append(f"{self.path}: holds more than {size}, only the beginning was read; unpack it first.")
        except _DAMAGE as error:
            if not self.polls:
                raise RecordingError(f"{self.path}: no readable archive ({error}); {_ADVICE}") from error
            self.warnings.append(f"{self.path}: is cut off or damaged ({error}); what lies before the defect was used.")

    def _read_tar(self, stream: _Counted) -> None:
        # "r|" reads front to back: what lies before a defect is kept, and a bomb is counted while it unpacks.
        with tarfile.open(fileobj=cast(BinaryIO, stream), mode="r|") as archive:
            for member in archive:
                self._add_member(archive, member)
        # tarfile takes a damaged or cut header for the end; the real end is a block of zeros, with nothing behind.
        while rest := stream.read(1 << 16):
            if rest.strip(b"\0"):
                raise tarfile.ReadError("a header is damaged")
        if stream.tail != bytes(512):
            raise tarfile.ReadError("the end is missing")

    def _add_member(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        if member.isdir():
            return
        name = PurePosixPath(member.name)
        if not member.isreg() or member.issparse() or name.is_absolute() or ".." in name.parts:
            self.ignored[member.name] += 1
        elif member.size > MAX_PAGE_BYTES:
            self.add(name, _too_large)
        elif (reader := archive.extractfile(member)) is not None:
            data = reader.read()
            if len(data) < member.size:
                raise tarfile.ReadError("unexpected end of data")
            packed = zlib.compress(data, 1)  # pages shrink tenfold, so that hours of them fit
            self.add(name, lambda: zlib.decompress(packed))

    def add(self, name: PurePosixPath, load: _Load) -> None:
        """File one member by its name. Of two polls at one time the later member stays, but a page before an error."""
        match = _PAGE_NAME.fullmatch(name.name)
        if match is not None:
            polls = self.polls.setdefault(name.parent, {})
            stamp, kind = int(match[1]), match[2]
            if stamp in polls:
                self.ignored[str(name)] += 1
            if stamp not in polls or kind == "prom" or polls[stamp][0] == "error":
                polls[stamp] = (kind, load)
        elif name.name == "meta.json":
            self._add_meta(name, load)
        else:
            self.ignored[str(name)] += 1

    def _add_meta(self, name: PurePosixPath, load: _Load) -> None:
        try:
            found = json.loads(load())
        except (OSError, RecordingError, ValueError, RecursionError) as error:
            self.warnings.append(f"{self.path}: {name} cannot be read ({error}); it is not used.")
            return
        known = {key: found[key] for key in META_KEYS if key in found} if isinstance(found, dict) else {}
        self.meta[name.parent] = {key: value for key, value in known.items() if isinstance(value, str | int | float)}

    def recording(self) -> Recording:
        if not self.polls:
            raise RecordingError(f"{self.path}: holds no page named <unix milliseconds>.prom or .error; {_ADVICE}")
        if self.ignored:
            total, some = self.ignored.total(), ", ".join(list(self.ignored)[:3])
            self.warnings.append(f"{self.path}: ignored {total} files: no page, or a second one at one time ({some}).")
        folders = sorted(self.polls)
        names = _target_names(folders, self.path)
        told = {folder: str(self.meta.get(folder, {}).get("target", names[folder])) for folder in folders}
        if len(set(told.values())) == len(folders):
            names = told
        targets = [RecordedTarget(names[folder], self._meta_of(folder), self.polls[folder]) for folder in folders]
        return Recording(self.path, tuple(targets), tuple(self.warnings))

    def _meta_of(self, folder: PurePosixPath) -> Mapping[str, str | float]:
        """meta.json beside the pages, else of the folders above."""
        return next((self.meta[place] for place in (folder, *folder.parents) if place in self.meta), {})


def _target_names(folders: list[PurePosixPath], path: Path) -> dict[PurePosixPath, str]:
    """Folder names, without the part that all share; pages at the top are named after the recording."""
    stem = re.sub(r"(\.tar|\.tar\.gz|\.tar\.xz|\.tgz|\.txz)?(\.partial)?$", "", path.resolve().name)
    levels = zip(*(folder.parts for folder in folders), strict=False) if len(folders) > 1 else ()
    shared = len(list(takewhile(lambda parts: len(set(parts)) == 1, levels)))
    return {folder: "/".join(folder.parts[shared:]) or stem for folder in folders}


def _failure(text: str) -> str:
    """The content of an .error file as a sentence: ours is one already, others hold the kind of failure only."""
    line = text.strip().split("\n")[0][:500] or "no reason recorded"
    return line if line.endswith((".", "?")) else f"the recorded poll failed ({line})."


def _read_file(file: Path) -> bytes:
    return _too_large() if file.stat().st_size > MAX_PAGE_BYTES else file.read_bytes()


def _too_large() -> bytes:
    raise RecordingError(f"larger than {MAX_PAGE_BYTES / 2**20:g} MiB")


def _unpacked(path: Path) -> BinaryIO:
    """The tar stream inside, told by its first bytes: names lie."""
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.open(path))
    return cast(BinaryIO, lzma.open(path)) if magic == b"\xfd7zXZ\0" else path.open("rb")


class _TooLarge(Exception):
    pass


class _Counted:
    """A decompressed stream that ends the reading after `max_bytes`. `tail` is the last block read."""

    def __init__(self, stream: BinaryIO, max_bytes: int) -> None:
        self._stream, self._left, self.tail = stream, max_bytes, b""

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        self.tail = (self.tail + data[-512:])[-512:]
        if self._left < 0:
            raise _TooLarge
        return data
