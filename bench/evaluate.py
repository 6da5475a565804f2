"""Cost of a diagnosis: normalising one page, and evaluating one window of 30 s alone and many windows together.

usage: python bench/evaluate.py [RECORDING] [WINDOWS]      default: a bundled recording, 200 windows
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from diagnoser.data import data_dir
from diagnoser.pipeline import History, diagnose, snapshots_of
from diagnoser.replay import scrapes
from diagnoser.rulebook.load import load
from diagnoser.sources.recording import open_recording

DEFAULT = Path(__file__).parents[1] / "tests" / "data" / "recordings" / "vllm-0.32.0--c-l1-preempt.tar.xz"


def cpu_seconds(work: object, repeat: int) -> float:
    """CPU seconds of one call, the best of five rounds."""
    assert callable(work)
    rounds = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(repeat):
            work()
        rounds.append((time.process_time() - start) / repeat)
    return min(rounds)


def main() -> None:
    """Prints one line a measurement."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    many = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    start = time.process_time()
    book = load([data_dir("rules")])
    print(f"reading the rules         {1e3 * (time.process_time() - start):8.1f} ms")
    (target,) = open_recording(path).targets
    polls = list(scrapes(target))
    history = History(target.name, 120)
    for poll in polls:
        history.add(poll)
    windows = history.windows(polls[-1].at, 30)
    print(f"one page to snapshots     {1e3 * cpu_seconds(lambda: snapshots_of(polls[-1], {}), 20):8.2f} ms")
    print(f"one window of 30 s        {1e3 * cpu_seconds(lambda: diagnose(windows, book), 5):8.1f} ms")
    together = cpu_seconds(lambda: diagnose(windows * many, book), 1) / many
    print(f"a window among {many:<10} {1e3 * together:8.2f} ms")


if __name__ == "__main__":
    main()
