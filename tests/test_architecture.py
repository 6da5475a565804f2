"""The one-way pipeline, held by the imports: a stage knows the model and the errors, a plug-in knows no sibling."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "diagnoser"
EVERYBODY = {"model", "errors", "units"}
STAGES = {
    "sources": EVERYBODY,
    "engines": EVERYBODY,
    "tiers": EVERYBODY,
    "signals": EVERYBODY,
    "rulebook": EVERYBODY,
    "gates": EVERYBODY | {"rulebook", "signals"},
    "checks": EVERYBODY | {"rulebook", "signals"},
    "verdict": EVERYBODY | {"rulebook", "signals"},
    "outputs": EVERYBODY | {"rulebook"},
    "capacity": EVERYBODY,
    "whatif": EVERYBODY,
    "language": EVERYBODY,
    "units": set(),
    "model": set(),
    "errors": set(),
    "data": set(),
}
"""What a stage may import of ours besides itself. Everything else is wiring."""
PLUGINS = {"engines": "ADAPTER", "tiers": "TIER", "signals": ("SIGNALS", "INTERVALS"), "outputs": "OUTPUT"}
PANDAS = {"signals"}


def imported(path: Path, text: str | None = None) -> list[str]:
    """Absolute names of the modules a file imports."""
    tree = ast.parse(path.read_text() if text is None else text)
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").count(".") == 1
            and node.module.startswith("diagnoser.")
        ):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def stage_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def wrong(path: Path, text: str | None = None) -> list[str]:
    """Imports that go against the direction."""
    stage, found = stage_of(path), []
    allowed = STAGES.get(stage)
    for name in imported(path, text):
        parts = name.split(".")
        if parts[0] == "pandas" and stage not in PANDAS:
            found.append(name)
        if allowed is not None and parts[0] == "diagnoser" and len(parts) > 1 and parts[1] not in {*allowed, stage}:
            found.append(f"{parts[0]}.{parts[1]}")
    return sorted(set(found))


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    assert wrong(path) == []


def test_a_wrong_import_is_seen() -> None:
    assert wrong(PACKAGE / "outputs" / "text.py", "from diagnoser.engines import adapters") == ["diagnoser.engines"]
    assert wrong(PACKAGE / "engines" / "vllm.py", "import diagnoser.signals.view") == ["diagnoser.signals"]
    assert wrong(PACKAGE / "checks.py", "import pandas as pd") == ["pandas"]


def plugins(stage: str) -> set[str]:
    """Module names of a stage that define a plug-in."""
    marks = PLUGINS[stage] if isinstance(PLUGINS[stage], tuple) else (PLUGINS[stage],)
    return {
        path.stem
        for path in (PACKAGE / stage).glob("*.py")
        if any(f"\n{mark} = " in path.read_text() or f"\n{mark}: " in path.read_text() for mark in marks)
    }


@pytest.mark.parametrize("stage", PLUGINS)
def test_plugins_do_not_know_each_other(stage: str) -> None:
    found = plugins(stage)
    assert found
    for name in found:
        others = {f"diagnoser.{stage}.{other}" for other in found - {name}}
        assert not others & set(imported(PACKAGE / stage / f"{name}.py"))


def test_the_model_needs_nothing_but_the_standard_library() -> None:
    allowed = {"__future__", "collections", "dataclasses", "enum", "typing"}
    for file in (PACKAGE / "model").glob("*.py"):
        assert all(name.split(".")[0] in allowed or name.startswith("diagnoser.model.") for name in imported(file))
