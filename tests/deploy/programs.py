"""Docker Compose 2, kustomize and hadolint as they are on this system. A missing one fails the test that needs it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from .stack import ROOT

UNPACKED = ROOT / ".tools" / "bin"
"""Where .ci/tools puts what the system lacks."""


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Of one program."""
    return subprocess.run([str(word) for word in words], cwd=ROOT, capture_output=True, text=True, timeout=60)


def compose(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """`docker compose`, which needs no engine for what is asked here."""
    candidates = [[str(UNPACKED / "docker-compose")], ["docker", "compose"], ["docker-compose"]]
    return run(*_first(candidates, ["version"], r"Docker Compose version v?[2-9]\.", "Docker Compose 2"), *words)


def kustomize(folder: Path) -> subprocess.CompletedProcess[str]:
    """What it builds of a folder."""
    candidates = [[str(UNPACKED / "kustomize"), "build"], ["kustomize", "build"], ["kubectl", "kustomize"]]
    return run(*_first(candidates, ["--help"], "kustomization", "kustomize"), folder)


def hadolint(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Installed beside pytest."""
    found = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert found, "hadolint is missing: pip install -c .ci/constraints.txt -e '.[dev]'"
    return run(found, *words)


def _first(candidates: list[list[str]], asked: list[str], said: str, name: str) -> list[str]:
    for words in candidates:
        if shutil.which(words[0]) and re.search(said, run(*words, *asked).stdout):
            return words
    raise AssertionError(f"{name} is missing: run .ci/tools, or put it on PATH")
