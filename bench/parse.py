"""Milliseconds to read one /metrics page: prometheus_client against PageParser, first met and met again.

    python bench/parse.py [PAGE ...]        PAGE: a page as text, or .xz; default: the pages of the tests

The wanted metrics are those of all engine adapters. Each number is the best of many runs, so that other load on the
machine does not count. Exit code 1 if a repeated page is read less than 20 times as fast as by prometheus_client.
"""

from __future__ import annotations

import importlib
import lzma
import pkgutil
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from diagnoser.sources.exposition import PageParser

REQUIRED_RATIO = 20.0
PAGES = Path(__file__).parents[1] / "tests" / "data" / "pages"


def wanted_metrics(pages: list[str]) -> set[str]:
    """What the adapters read; without adapters every family of an engine on the pages, histograms included."""
    wanted: set[str] = set()
    engines = importlib.import_module("diagnoser.engines")
    for module in pkgutil.iter_modules(engines.__path__):
        adapter = getattr(importlib.import_module(f"diagnoser.engines.{module.name}"), "ADAPTER", None)
        wanted |= set(adapter.metrics) if adapter is not None else set()
    found = {name for page in pages for name in re.findall(r"^# TYPE ((?:vllm|sglang|lmcache)[:_]\S+)", page, re.M)}
    return wanted or {name.removesuffix("_total") for name in found if not name.endswith("_created")}


def best_ms(run: Callable[[], object], seconds: float = 0.4) -> float:
    """Milliseconds of the fastest run."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def moved(page: str) -> str:
    """The page one poll later: same series, every value different."""
    return re.sub(r"(?m)^([^#].*) ([0-9]\S*)$", r"\1 1\2", page)


def read(path: Path) -> str:
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8", "surrogateescape")


def main(arguments: list[str]) -> int:
    paths = [Path(argument) for argument in arguments] or sorted(PAGES.glob("*.prom.xz"))
    pages = [read(path) for path in paths]
    wanted = wanted_metrics(pages)
    print(f"{len(wanted)} wanted metrics; milliseconds a page")
    print(f"{'page':<42}{'KB':>5}{'series':>8}{'wanted':>8}{'prom.client':>13}{'first':>8}{'again':>8}{'ratio':>7}")
    worst = float("inf")
    for path, page in zip(paths, pages, strict=True):
        parser, later = PageParser(wanted), moved(page)
        parsed = parser.parse(page)
        theirs = best_ms(lambda page=page: list(text_string_to_metric_families(page)))  # type: ignore[misc]
        first = best_ms(lambda page=page: PageParser(wanted).parse(page))  # type: ignore[misc]
        again = best_ms(lambda parser=parser, later=later: parser.parse(later))  # type: ignore[misc]
        worst = min(worst, theirs / again)
        counts = f"{len(page) / 1000:>5.0f}{parsed.series_total:>8}{len(parsed.samples):>8}"
        print(f"{path.name[:41]:<42}{counts}{theirs:>13.2f}{first:>8.2f}{again:>8.3f}{theirs / again:>6.0f}x")
    print(f"worst ratio {worst:.0f}x, required {REQUIRED_RATIO:.0f}x")
    return 0 if worst >= REQUIRED_RATIO else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
