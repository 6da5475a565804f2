"""Every command explains itself, quickly, and usage errors are told apart from verdicts."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import pytest
from ran import Ran

from diagnoser import __version__
from diagnoser.commands import NAMES, command
from diagnoser.outputs import outputs

from .conftest import shell

Diagnose = Callable[..., Ran]


def test_alone_it_prints_help_with_examples(diagnose: Diagnose) -> None:
    ran = diagnose()
    assert ran.code == 0 and ran.err == ""
    assert ran.out == diagnose("--help").out
    examples = ran.out.split("examples:")[1].split("commands:")[0]
    assert len([line for line in examples.splitlines() if line.strip().startswith("diagnose ")]) == 3
    assert all(f"  {name} " in ran.out for name in NAMES)
    assert max(map(len, ran.out.splitlines())) < 80
    assert diagnose("--version").out == f"diagnose {__version__}\n"


@pytest.mark.parametrize("name", [*NAMES, ""])
def test_every_command_has_help_and_examples(diagnose: Diagnose, name: str) -> None:
    ran = diagnose(*([name] if name else ["localhost:8000"]), "--help")
    assert ran.code == 0
    assert f"usage: diagnose {name}".rstrip() in ran.out
    assert command(name or "live").summary in ran.out
    assert "examples:\n  diagnose" in ran.out or "examples:\n  curl" in ran.out
    assert max(map(len, ran.out.splitlines())) < 80
    for line, _ in command(name or "live").examples:
        assert line in ran.out


def test_formats_are_in_the_help(diagnose: Diagnose) -> None:
    out = diagnose("replay", "--help").out
    assert all(name in out for name in outputs()) and "exit codes: 0 no bottleneck" in out


@pytest.mark.parametrize(
    "words",
    [
        ("replay",),
        ("replay", "x", "--window", "soon"),
        ("replay", "x", "--window", "0"),
        ("replay", "x", "--format", "xml"),
        ("replay", "x", "--last", "--at", "+1s"),
        ("localhost:1", "--nonsense"),
        ("localhost:1", "--window", "1s", "--interval", "2s"),
        ("localhost:1", "--header", "no colon"),
        ("localhost:1", "--header-file", "/nowhere"),
        ("localhost:99999",),
        ("ftp://host",),
        ("reply",),
        ("--format", "json", "replay", "x"),
        ("incident.tar.gz",),
        ("page.prom",),
        ("mock", "x", "--speed", "-1"),
        ("demo", "--speed", "0"),
        ("rules", "mend"),
        ("explain", "nothing_of_the_kind"),
    ],
)
def test_usage_errors(diagnose: Diagnose, words: tuple[str, ...]) -> None:
    ran = diagnose(*words)
    assert (ran.code, ran.out) == (64, "")
    assert ran.err.startswith("diagnose: ") and ran.err.count("\n") == 1


def test_a_misspelt_command_is_recognised(diagnose: Diagnose) -> None:
    assert "did you mean replay?" in diagnose("reply").err
    assert "diagnose replay incident.tar.gz" in diagnose("incident.tar.gz").err
    assert "comes first: diagnose replay" in diagnose("--format", "json", "replay", "x").err


def test_help_is_quick() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(3):
        subprocess.run([sys.executable, "-m", "diagnoser", "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3
    assert seconds < 0.2, "CPU; pandas alone costs 0.37 s"


def test_help_needs_none_of_the_heavy_libraries() -> None:
    script = "import sys; from diagnoser.cli import main; main(['replay', '--help']); "
    script += "assert not {'pandas', 'httpx', 'rich', 'yaml', 'asyncio'} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_as_a_process_of_its_own() -> None:
    assert shell("--version").out == f"diagnose {__version__}\n"
    assert shell("nonsense", "--x").code == 64
