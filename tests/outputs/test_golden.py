"""What a person sees, whole. `pytest tests/outputs --update-golden` writes the files anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnoser.cli import main

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
PREEMPTING = "vllm-0.32.0--c-l1-preempt"
RESERVATION = "sglang-0.5.23--d-reservation"
L2_IDLE = "sglang-0.5.23--j1-hicache-l1-bound-l2-idle"
CASES = {
    "preempting.txt": (PREEMPTING, ()),
    "preempting-facts.txt": (
        PREEMPTING,
        ("--last", "--fact", "max_num_seqs=64", "--fact", "max_num_batched_tokens=1024"),
    ),
    "admission.txt": ("vllm-0.32.0--d-l1-admission", ()),
    "reservation.txt": (RESERVATION, ()),
    "l2-idle.txt": (L2_IDLE, ()),
    "slots.txt": ("vllm-0.32.0--e-max-num-seqs", ()),
    "prefill.txt": ("sglang-0.5.23--f-prefill-compute", ()),
    "hung.txt": ("vllm-0.32.0--q-engine-hung", ()),
    "healthy.txt": ("vllm-0.32.0--o-busy-not-bound", ()),
    "killed.txt": ("vllm-0.32.0--i-killed", ()),
    "two-ranks.txt": ("vllm-0.32.0--m-dp2", ()),
    "preempting.md": (PREEMPTING, ("--format", "markdown")),
    "two-ranks.md": ("vllm-0.32.0--m-dp2", ("--format", "markdown", "--last")),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, updating: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    recording, options = CASES[name]
    monkeypatch.delenv("COLUMNS", raising=False)
    main(["replay", str(RECORDINGS / f"{recording}.tar.xz"), *options])
    out = capsys.readouterr().out
    if updating:
        (GOLDEN / name).write_text(out, encoding="utf-8")
    assert out == (GOLDEN / name).read_text(encoding="utf-8"), "`pytest tests/outputs --update-golden`"


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith(".txt")])
def test_what_every_text_keeps(name: str) -> None:
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 80, "80 columns"
    assert "\x1b" not in "".join(lines), "no colour when piped"
    assert any(word in "".join(lines[:3]) for word in ("BOUND", "NO BOTTLENECK", "UNREACHABLE", "STALLED")), (
        "the answer"
    )
    assert not any(line != line.rstrip() for line in lines)
    assert "\n\n\n" not in "\n".join(lines)
