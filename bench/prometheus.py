"""Cost of diagnosing a fleet through a real server: N engines, 20 scrapes 15 s apart, one in twenty is L1-bound.

usage: python bench/prometheus.py [ENGINES ...]           default: 50 200, in Prometheus and in VictoriaMetrics
       python bench/prometheus.py score                   the server path against the truth, every 5 s, all recordings

The engines are copies of bundled recordings, every series of their pages, with 20 pages stamped anew. Needs the Debian
packages prometheus and victoria-metrics. Peak memory is of this process, with pandas and all libraries.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[0] = str(TESTS)  # instead of bench/, where this file would hide the package of that name

from prometheus.conftest import bare  # noqa: E402
from prometheus.servers import Stored, prometheus, victoria  # noqa: E402

from diagnoser.data import data_dir  # noqa: E402
from diagnoser.pipeline import diagnose  # noqa: E402
from diagnoser.rulebook.load import load  # noqa: E402
from diagnoser.served import Wish, served  # noqa: E402
from diagnoser.sources.prometheus.access import Access, open_client  # noqa: E402
from diagnoser.sources.prometheus.api import Server  # noqa: E402
from diagnoser.sources.recording import RecordedTarget  # noqa: E402

BOUND, USUAL = "vllm-0.32.0--c-l1-preempt", ("vllm-0.32.0--o-busy-not-bound", "sglang-0.5.23--b-healthy")
SCRAPES, INTERVAL_MS, END_MS = 20, 15_000, 1_795_976_100_000


def restamped(name: str) -> RecordedTarget:
    """SCRAPES of its pages, spread evenly, INTERVAL_MS apart up to END_MS."""
    polls = [poll for _, poll in sorted(bare(name)._polls.items()) if poll[0] == "prom"]
    chosen = [polls[i * (len(polls) - 1) // (SCRAPES - 1)] for i in range(SCRAPES)]
    first = END_MS - (SCRAPES - 1) * INTERVAL_MS
    return RecordedTarget(name, {}, {first + i * INTERVAL_MS: poll for i, poll in enumerate(chosen)})


def fleet(engines: int) -> list[Stored]:
    """The synthetic fleet."""
    made = {name: restamped(name) for name in (BOUND, *USUAL)}
    kinds = [BOUND if i % 20 == 7 else USUAL[i % 2] for i in range(engines)]
    return [
        Stored(made[kind], {"job": "llm", "instance": f"10.0.{i // 250}.{i % 250}:8000", "pod": f"llm-{i}"})
        for i, kind in enumerate(kinds)
    ]


def measure(url: str) -> str:
    """One diagnosis of everything: what it cost and what came out."""
    book = load([data_dir("rules")])
    wish = Wish(END_MS / 1000, 300.0)

    async def ask() -> tuple[Server, list]:  # type: ignore[type-arg]
        async with open_client(Access(url)) as client:
            server = Server(client, url)
            return server, (await served(server, wish)).windows

    gc.disable()  # as the command does
    start, cpu = time.perf_counter(), time.process_time()
    server, windows = asyncio.run(ask())
    fetched, fetched_cpu = time.perf_counter(), time.process_time()
    found = diagnose(windows, book)
    done, done_cpu = time.perf_counter(), time.process_time()
    verdicts = Counter(one.verdict.bottleneck for one in found)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{server.queries:4} queries {server.bytes / 1e6:7.1f} MB   fetch {fetched - start:6.2f} s "
        f"({fetched_cpu - cpu:5.2f} s CPU)   verdicts {done - fetched:6.2f} s ({done_cpu - fetched_cpu:5.2f} s CPU)   "
        f"peak {memory:5.0f} MB   {dict(verdicts)}"
    )


def main() -> None:
    """Prints one line a server and size. Every measurement is a process of its own, for its peak memory."""
    if sys.argv[1:2] == ["measure"]:
        print(measure(sys.argv[2]))
        return
    if sys.argv[1:2] == ["score"]:
        score()
        return
    for engines in map(int, sys.argv[1:] or ("50", "200")):
        for product in (prometheus, victoria):
            with tempfile.TemporaryDirectory() as folder, product(Path(folder), fleet(engines)) as url:
                words = [sys.executable, __file__, "measure", url]
                for _ in range(2):  # the second finds the server warm
                    line = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
                print(f"{engines:5} engines  {product.__name__:<10} {line}", flush=True)


def score() -> None:
    """Accuracy of the server path and of the direct path on the same thinned recordings."""
    from prometheus.test_score import EVERY, STEP, WINDOW, score_served
    from score.scoring import score_recording, thinned

    book = load([data_dir("rules")])
    paths = [
        path.with_name(path.name.replace(".truth.jsonl.xz", ".tar.xz"))
        for path in sorted((TESTS / "data" / "recordings").glob("*.truth.jsonl.xz"))
    ]
    names = [path.name.removesuffix(".tar.xz") for path in paths]
    kept = [Stored(thinned(bare(name), EVERY), {"job": "llm", "instance": name}) for name in names]
    with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder), kept) as url:
        one = [score_served(url, stored, path) for stored, path in zip(kept, paths, strict=True)]
    other = [score_recording(path, book, thin=EVERY, window=WINDOW, step=STEP) for path in paths]
    for title, found in (("server", one), ("direct", other)):
        judged, right = sum(s.judged for s in found), sum(s.right for s in found)
        wrong = sum((s.wrong for s in found), Counter[str]())
        print(f"{title}: {right} of {judged} windows right ({right / judged:.3f}); wrong: {dict(+wrong)}")


if __name__ == "__main__":
    main()
