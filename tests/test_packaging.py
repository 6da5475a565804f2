"""What a user installs: a wheel holds rules, schema and demo, and runs from there without the source tree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from diagnoser.data import data_dir

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as it is built."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel."""
    site = tmp_path_factory.mktemp("site")
    wheel.extractall(site)
    return site


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "diagnoser", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONNOUSERSITE": "1"}
    return subprocess.run(command, cwd=site, env=environment, capture_output=True, text=True, timeout=60)


def test_the_wheel_finds_its_own_rules(installed: Path) -> None:
    where = "import diagnoser.data, sys; print(diagnoser.data.data_dir('rules'))"
    found = subprocess.run(
        [sys.executable, "-P", "-c", where], cwd=installed, env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.strip() == str(installed / "diagnoser" / "_data" / "rules")
    lint = run(installed, "rules", "lint")
    assert (lint.returncode, lint.stderr) == (0, "")


def test_the_wheel_diagnoses(installed: Path) -> None:
    recording = ROOT / "tests" / "data" / "recordings" / "sglang-0.5.23--d-reservation.tar.xz"
    found = run(installed, "replay", str(recording), "--format", "jsonl", "--step", "60s")
    assert found.returncode == 2
    assert '"bottleneck": "l1"' in found.stdout or '"bottleneck":"l1"' in found.stdout


def test_schema_demo_and_types_ship(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert "diagnoser/py.typed" in names
    assert any(name.startswith("diagnoser/schema/") and name.endswith(".json") for name in names)
    assert any(name.startswith("diagnoser/demo/") and name.endswith(".tar.xz") for name in names)
    assert not any(name.startswith(("rules", "tests", "diagnoser/__pycache__")) for name in names)


def test_an_editable_install_reads_the_source_tree() -> None:
    assert data_dir("rules") == ROOT / "rules"


def test_the_wheel_speaks_chinese(installed: Path) -> None:
    where = "from diagnoser.language import told; print(told('needs two pages', 'zh'))"
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONUTF8": "1"}
    found = subprocess.run(
        [sys.executable, "-P", "-c", where], cwd=installed, env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "需要两次采样"
