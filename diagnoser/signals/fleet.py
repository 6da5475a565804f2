"""One rank among its peers: ranks of one server, or replicas of one model diagnosed together.

An average hides a hot one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from diagnoser.model import EngineId, SignalValue
from diagnoser.signals.table import Row
from diagnoser.signals.view import mean

NAMES = ("peers", "peer_used_lead_ratio", "peer_running_lead_ratio", "peer_running_total_requests")
ALONE = "no other rank or replica of this model was diagnosed together with it"


def compare(engines: Sequence[EngineId], ends: Sequence[float], rows: Sequence[Row]) -> list[dict[str, SignalValue]]:
    """Signals of every window that need its peers: those with the same model (else the same target) and
    the same end.
    """
    groups: dict[tuple[str, float], list[int]] = defaultdict(list)
    for i, (engine, end) in enumerate(zip(engines, ends, strict=True)):
        groups[(engine.model or engine.target, round(end))].append(i)
    out: list[dict[str, SignalValue]] = [{} for _ in rows]
    for members in groups.values():
        for i in members:
            out[i] = _among(rows, i, members)
    return out


def _among(rows: Sequence[Row], i: int, members: list[int]) -> dict[str, SignalValue]:
    found = {"peers": SignalValue("peers", "ranks", float(len(members) - 1))}
    if len(members) < 2:
        return found | {name: SignalValue(name, "ratio", None, ALONE) for name in NAMES[1:]}
    used, running = _column(rows, members, "l1_used_ratio_mean"), _column(rows, members, "running_mean_requests")
    if i in used and len(used) > 1:
        lead = used[i] - mean(list(used.values()))
        found["peer_used_lead_ratio"] = SignalValue(
            "peer_used_lead_ratio", "ratio", lead, "", _series(rows[i], "l1_used_ratio_mean")
        )
    total = sum(running.values())
    if i in running and len(running) > 1:
        lead = running[i] / total - 1 / len(running) if total > 0 else 0.0
        series = _series(rows[i], "running_mean_requests")
        found["peer_running_lead_ratio"] = SignalValue("peer_running_lead_ratio", "ratio", lead, "", series)
        found["peer_running_total_requests"] = SignalValue("peer_running_total_requests", "requests", total, "", series)
    missing = {n: SignalValue(n, "ratio", None, "a peer does not export it") for n in NAMES if n not in found}
    return found | missing


def _column(rows: Sequence[Row], members: list[int], name: str) -> dict[int, float]:
    return {i: v.value for i in members if (v := rows[i].get(name)) is not None and v.value is not None}


def _series(row: Row, name: str) -> tuple[str, ...]:
    return row[name].series if name in row else ()
