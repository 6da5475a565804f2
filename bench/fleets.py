"""A whole fleet by its metrics server: queries, seconds, our own CPU and memory, the server's CPU, and how right.

    python -m bench.fleets --keep DIR [--runs 3]

DIR is a folder made by `python -m bench.fleet --kind victoriametrics|prometheus --engines N --keep DIR`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections import Counter
from typing import Any

from bench.fleet import kept_fleet
from diagnoser.commands import setup
from diagnoser.model import Diagnosis
from diagnoser.promql.evaluate import Wanted, evaluate
from diagnoser.sources.prometheus.access import Access, open_client
from diagnoser.sources.prometheus.api import Server

WINDOW = 300.0


async def once(url: str, end: float) -> tuple[tuple[Diagnosis, ...], dict[str, float]]:
    """One evaluation of all engines, and what it cost."""
    book = setup.rulebook([])
    async with open_client(Access(url)) as client:
        server = Server(client, url, timeout=300.0)
        cpu, wall = time.process_time(), time.perf_counter()
        found, answers, step = await evaluate(server, Wanted(end, WINDOW), book)
        cost = {"cpu_seconds": time.process_time() - cpu, "seconds": time.perf_counter() - wall}
    assert not answers.failed, answers.failed
    return found, {**cost, "queries": server.queries, "megabytes": server.bytes / 1e6, "step": step}


def judged(found: tuple[Diagnosis, ...], truth: dict[str, Any]) -> Counter[str]:
    """Bound engines found, missed and falsely accused; of those found, with the right bottleneck."""
    counts: Counter[str] = Counter()
    for one in found:
        known = truth[one.engine.target]
        bound = one.verdict.bottleneck not in ("none", "unknown")
        of_bound, of_others = ("found", "missed"), ("false", "fine")
        counts[(of_bound if known["bound"] else of_others)[not bound]] += 1
        counts["right"] += bound and known["bound"] and one.verdict.bottleneck == known["cause"]
    return counts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", required=True)
    parser.add_argument("--runs", type=int, default=2)
    args = parser.parse_args()
    with kept_fleet(args.keep, flags=()) as fleet:
        for _ in range(args.runs):
            before = fleet.server.cpu()
            found, cost = asyncio.run(once(fleet.url, fleet.end))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            server = fleet.server.cpu() - before
            line = {**cost, "server_cpu_seconds": server, "peak_megabytes": peak, "ranks": len(found)}
            print(json.dumps({name: round(value, 2) for name, value in line.items()}), dict(judged(found, fleet.truth)))


if __name__ == "__main__":
    main()
