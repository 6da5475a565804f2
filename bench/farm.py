"""Mock engines for the benchmarks, in a process of their own: `python bench/farm.py N` prints their addresses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diagnoser.demo import Excerpt
from diagnoser.sources.mock import MockEngine
from diagnoser.sources.recording import open_recording

RECORDINGS = Path(__file__).parents[1] / "tests" / "data" / "recordings"
VLLM = ("vllm-0.32.0--c-l1-preempt",)
MIXED = ("vllm-0.32.0--o-busy-not-bound", "sglang-0.5.23--b-healthy", "vllm-0.32.0--c-l1-preempt")


@contextmanager
def farm(engines: int, kind: str = "vllm") -> Iterator[list[str]]:
    """So many engines, each begun at another second of its recording; gives host:port of each."""
    words = [sys.executable, __file__, str(engines), kind]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Serves until stdin is closed."""
    names = VLLM if sys.argv[2] == "vllm" else MIXED
    targets = [open_recording(RECORDINGS / f"{name}.tar.xz").targets[0] for name in names]
    engines = []
    for number in range(int(sys.argv[1])):
        engine = MockEngine(Excerpt(targets[number % len(targets)], number % 20), loop=True)
        engine.start()
        engines.append(engine)
    print(" ".join(e.url.removeprefix("http://").removesuffix("/metrics") for e in engines), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
