"""@FILE: engines, their host tiers and what is known of them, kept in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diagnoser.cli import main

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "vllm-0.32.0--e-max-num-seqs.tar.xz"


def test_arguments_stand_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prod.args"
    file.write_text(
        f"# what we know\n{RECORDING}   # one engine\n--fact max_num_seqs=8\n\n--format json --step '60s'\n"
    )
    assert main(["replay", f"@{file}"]) == 2
    (found, *_) = json.loads(capsys.readouterr().out)["diagnoses"]
    assert found["verdict"]["bottleneck"] == "slots"
    assert found["facts"]["max_num_seqs"]["value"] == 8


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"--fact 'open", "No closing quotation"),
        (b"\xff\xfe", "not UTF-8"),
        (b"--nonsense", "--nonsense"),
    ],
)
def test_a_bad_file_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, said: str
) -> None:
    file = tmp_path / "prod.args"
    if content is not None:
        file.write_bytes(content)
    assert main(["127.0.0.1:9", f"@{file}"]) == 64
    told = capsys.readouterr().err
    assert said in told and "Traceback" not in told
