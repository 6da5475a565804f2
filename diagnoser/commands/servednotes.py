"""What the reader must know beside the verdicts of engines that a metrics server knows."""

from __future__ import annotations

from collections import Counter
from zoneinfo import ZoneInfo

from diagnoser import clock
from diagnoser.fleet import Found
from diagnoser.model import Window
from diagnoser.served import Served, Wish
from diagnoser.sources.prometheus.api import Server
from diagnoser.units import duration

SHOWN = 5
"""Names listed in a note."""


def notes(server: Server, found: Found, wish: Wish, zone: ZoneInfo) -> list[str]:
    """What was asked, and what the reader must know about the answer."""
    targets = len({diagnosis.engine.target for diagnosis in found.diagnoses})
    size = f"{server.queries} queries, {server.bytes / 1e6:.1f} MB"
    when = f"{duration(wish.window)} up to {clock.shown(wish.at, zone)}"
    out = [f"from {server.name}: {when}; {targets} engine{'s' * (targets != 1)}, {size}.", *found.said]
    return out + (_of_samples(server, found.samples) if found.samples is not None else [])


def _of_samples(server: Server, found: Served) -> list[str]:
    out: list[str] = []
    effect = f"of {len(found.doubted)} engines every no is unknown" if found.doubted else "engines may be missing here"
    out += [f"{server.name} warns: {text}; {effect}." for text in found.warnings]
    errors = Counter(found.failed.values())
    out += [f"{error} It was asked for {count} engines, which are unknown." for error, count in errors.items()]
    if found.gone:
        listed = ", ".join(found.gone[:SHOWN]) + (", ..." if len(found.gone) > SHOWN else "")
        out.append(f"scraped within the hour before and no more for a minute, so not shown: {listed}.")
    unsized = {w.engine.target for w in found.windows if w.engine.family == "vllm" and _no_pool(w)}
    if unsized:
        why = "VictoriaMetrics cuts the labels of vllm:cache_config_info unless -maxLabelsPerTimeseries is 60"
        out.append(f"{len(unsized)} vLLM engines show no pool size; {why}.")
    if found.blind:
        out.append(f"{found.blind} engines have no `up` series: their failed scrapes cannot be told from gaps.")
    return out


def _no_pool(window: Window) -> bool:
    return bool(window.snapshots) and window.snapshots[-1].pool.capacity is None
