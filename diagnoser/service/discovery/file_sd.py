"""Files with lists of targets, in Prometheus' format, read again when they change.

Their times and sizes are looked at every two seconds. Notifications of the kernel would be a dependency more, and do
not come for network file systems; a few stat calls cost nothing and also see the symbolic links of a ConfigMap move.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from glob import glob
from pathlib import Path

from diagnoser.service.discovery.base import DiscoveryError, Found, target_groups

MAX_FILE_BYTES = 16 * 2**20
_Seen = dict[str, tuple[int, int, int]]


class Files:
    """All files that match any of the patterns; relative ones begin at `folder`. No file at all is an empty list."""

    every = 2.0

    def __init__(self, patterns: Sequence[str], folder: Path) -> None:
        self.name = f"file_sd {', '.join(patterns)}"
        self._patterns = [str(folder / pattern) for pattern in patterns]
        self._seen: _Seen | None = None
        self._lists: dict[str, list[Found]] = {}

    async def refresh(self) -> Sequence[Found] | None:
        """All targets of all files, None if no file has changed. The last good list of a bad file stands."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> list[Found] | None:
        seen = self._look()
        if seen == self._seen:
            return None
        bad = []
        for path, stamp in seen.items():
            if (self._seen or {}).get(path) != stamp:
                try:
                    self._lists[path] = target_groups(_text(Path(path)), path)
                except DiscoveryError as error:
                    bad.append((path, error))
        self._seen = {path: stamp for path, stamp in seen.items() if path not in dict(bad)}
        self._lists = {path: found for path, found in self._lists.items() if path in seen}
        found = [one for path in seen for one in self._lists.get(path, ())]
        if bad:
            bad[0][1].partial = found
            raise bad[0][1]
        return found

    def _look(self) -> _Seen:
        """Time, size and inode of every file."""
        seen = {}
        for path in sorted({path for pattern in self._patterns for path in glob(pattern, recursive=True)}):
            with suppress(OSError):  # gone since it was listed
                stat = Path(path).stat()
                seen[path] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        return seen


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise DiscoveryError(f"{path}: is too large for a list of targets")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DiscoveryError(f"{path}: cannot be read ({why})") from None
