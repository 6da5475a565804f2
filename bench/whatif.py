"""The pool that each recording's what-if asks for, from that recording alone.

usage: python bench/whatif.py [FOLDER] [--windows]     default: tests/data/recordings; --windows: every half minute too

Recordings of one load on several pools should agree with each other and with the smallest pool that had no lasting
queue.
"""

from __future__ import annotations

import sys
from pathlib import Path

from diagnoser.commands.setup import rulebook
from diagnoser.model import Diagnosis
from diagnoser.outputs.base import badness
from diagnoser.replay import replay
from diagnoser.sources.recording import open_recording
from diagnoser.stretch import diagnosed, with_what_if

DEFAULT = Path(__file__).parents[1] / "tests" / "data" / "recordings"
SERIES = "--h12-pool-"
SMALLEST_BLOCKS, BLOCK = 480, 32
"""The four recordings together: 448 blocks have short queues, 320 are marginal: no lasting one from about 480."""


def required(diagnosis: Diagnosis) -> tuple[float, float, float] | None:
    """Low, middle and high of the pool asked for, in tokens."""
    found = next((one for one in diagnosis.what_if if one.id == "required_pool"), None)
    if found is None or found.pool_tokens is None:
        return None
    return found.pool_low_tokens or 0.0, found.pool_tokens, found.pool_high_tokens or 0.0


def line(name: str, one: Diagnosis) -> str:
    """One row of the table."""
    pool, values = required(one), {n: s.value for n, s in one.signals.items()}
    shown = [f"{values[n]:8.2f}" if values.get(n) is not None else "       -" for n in SHOWN]
    asked = "-" if pool is None else f"{pool[0]:8.0f} {pool[1]:8.0f} {pool[2]:8.0f}"
    if pool is not None and SERIES in name:
        blocks = pool[1] / BLOCK
        asked += f"  = {blocks:.0f} blocks, {blocks / SMALLEST_BLOCKS - 1:+.0%} of {SMALLEST_BLOCKS}"
    head = f"{name:<46} {one.engine.rank} {one.window_seconds:4.0f} {one.verdict.bottleneck:<8}"
    return f"{head}{''.join(shown)}  {asked}"


SHOWN = ("l1_capacity_tokens", "arrival_rate", "service_rate", "rho", "step_stretch_ratio")


def main() -> None:
    """Prints a row an engine rank."""
    given = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
    folder, book = Path(given[0]) if given else DEFAULT, rulebook([])
    print("recording, rank, seconds, gate, pool, arrivals/s, served/s, rho, lost; pool asked for: low, middle, high")
    for path in sorted(folder.glob("*.tar.xz")):
        name, recording = path.name.removesuffix(".tar.xz"), open_recording(path)
        for one in diagnosed(recording, book, {}, 30.0, badness):
            if one.verdict.bottleneck in ("l1", "slots", "prefill"):
                print(line(name, one), flush=True)
        for ones in replay(recording, book, {}, 30.0, 10.0) if "--windows" in sys.argv else ():
            for one in (with_what_if(one, book) for one in ones if one.verdict.bottleneck == "l1"):
                print(line(f"  {one.at - min(recording.targets[0].times):.0f} s", one))


if __name__ == "__main__":
    main()
