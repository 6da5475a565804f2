"""Finds the files that ship with the package: rules/ beside the source tree, or diagnoser/_data/ in a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """The shipped folder `name` ("rules", "schema", "recordings").

    A wheel holds it under diagnoser/_data; an editable install has no _data (hatchling does not build it there),
    so the source tree answers.
    """
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
