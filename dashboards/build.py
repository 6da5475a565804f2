"""Writes dashboards/*.json: `python dashboards/build.py [-o DIR]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from boards.files import FOLDER, files


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, metavar="DIR")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)


if __name__ == "__main__":
    main()
