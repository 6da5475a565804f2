"""One rank among its peers: ranks of one server, or replicas of one model diagnosed together.

An average hides a hot one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from diagnoser.model import EngineId, SignalValue
from diagnoser.signals.table import Row
from diagnoser.signals.view import mean

LEADS = ("peer_used_lead_ratio", "peer_running_lead_ratio", "peer_running_total_requests")
MODEL = ("model_used_min_ratio", "model_used_max_ratio", "model_used_ratio", "model_free_tokens")
NAMES = ("peers", *LEADS, *MODEL)
UNITS = {"peer_running_total_requests": "requests", "model_free_tokens": "tokens"}
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
        columns = _Columns(rows, members)
        for i in members:
            out[i] = _among(rows, i, columns)
    return out


class _Columns:
    """What is compared of the ranks of one model, and what they add up to."""

    def __init__(self, rows: Sequence[Row], members: Sequence[int]) -> None:
        self.members = members
        self.used = _column(rows, members, "l1_used_ratio_mean")
        self.running = _column(rows, members, "running_mean_requests")
        self.used_mean = mean(list(self.used.values())) if self.used else 0.0
        self.total = sum(self.running.values())
        self.model = self._model(_column(rows, members, "l1_capacity_tokens"))

    def _model(self, capacity: dict[int, float]) -> dict[str, float]:
        """Coldest, hottest, and how much of the pools together is held; tokens only where every size is known."""
        if not self.used:
            return {}
        found = {"model_used_min_ratio": min(self.used.values()), "model_used_max_ratio": max(self.used.values())}
        if set(capacity) < set(self.used):
            return found | {"model_used_ratio": self.used_mean}
        held = sum(self.used[i] * capacity[i] for i in self.used)
        size = sum(capacity[i] for i in self.used)
        return found | {"model_used_ratio": held / size if size else 0.0, "model_free_tokens": size - held}


def _among(rows: Sequence[Row], i: int, among: _Columns) -> dict[str, SignalValue]:
    found = {"peers": SignalValue("peers", "ranks", float(len(among.members) - 1))}
    if len(among.members) < 2:
        return found | {name: SignalValue(name, _unit(name), None, ALONE) for name in NAMES[1:]}
    values = dict(among.model)
    if i in among.used and len(among.used) > 1:
        values["peer_used_lead_ratio"] = among.used[i] - among.used_mean
    if i in among.running and len(among.running) > 1:
        fair = 1 / len(among.running)
        values["peer_running_lead_ratio"] = among.running[i] / among.total - fair if among.total > 0 else 0.0
        values["peer_running_total_requests"] = among.total
    for name in NAMES[1:]:
        value, source = values.get(name), "running_mean_requests" if "running" in name else "l1_used_ratio_mean"
        missing = "" if value is not None else "a peer does not export it"
        series = _series(rows[i], source) if value is not None else ()
        found[name] = SignalValue(name, _unit(name), value, missing, series)
    return found


def _unit(name: str) -> str:
    return UNITS.get(name, "ratio")


def _column(rows: Sequence[Row], members: Sequence[int], name: str) -> dict[int, float]:
    return {i: v.value for i in members if (v := rows[i].get(name)) is not None and v.value is not None}


def _series(row: Row, name: str) -> tuple[str, ...]:
    return row[name].series if name in row else ()
