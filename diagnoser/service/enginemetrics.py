"""Every engine rank's verdict and numbers as gauges in the exposition format."""

from __future__ import annotations

import math
from collections.abc import Sequence

from prometheus_client.utils import floatToGoString

from diagnoser.model import L2State, Quantity, Range
from diagnoser.outputs.base import urgency
from diagnoser.service.api.models import BOTTLENECKS, SEVERITIES
from diagnoser.service.board import Entry

LABELS = ("target", "rank", "model", "engine_family")
"""Not `engine`: vLLM's own series have a label of that name with another meaning."""
STATES = ("used", "evictable", "available")
SIGNALS = (
    ("requests_waiting", "waiting_last_requests", "Requests waiting at the end of the window."),
    ("requests_waiting_max", "waiting_max_requests", "Most requests waiting within the window."),
    ("requests_running", "running_mean_requests", "Mean of running requests."),
    ("slots_limit", "slots_limit_requests", "Requests that may run at once, where known."),
    ("head_need_tokens", "head_need_tokens", "KV tokens that a typical head of the queue needs at once."),
    ("preemptions_per_second", "preemptions_rate", "Running requests thrown out a second."),
    ("arrivals_per_second", "arrival_rate", "Requests that arrive a second."),
    ("admissions_per_second", "admission_rate", "Requests that are admitted a second."),
    ("load_ratio", "rho", "Arrivals over what could be served; above 1 the queue grows."),
    ("required_pool_tokens", "required_pool_tokens", "Pool that the present load asks for."),
    ("exhaustion_seconds", "time_to_exhaustion_seconds", "Until a typical prompt finds no room."),
    ("ttft_mean_seconds", "ttft_mean_seconds", "Mean time to first token in the window."),
    ("ttft_queue_ratio", "queue_share_ratio", "Part of the time to first token spent in the queue."),
    ("prefix_hit_ratio", "prefix_hit_ratio", "Prompt tokens found in L1's prefix cache."),
    ("l2_resident_ratio", "l2_resident_ratio", "Part of the host tier that is filled, where it can be seen."),
    ("l2_hit_ratio", "l2_hit_ratio", "Tokens found in the host tier of those looked up there."),
)
"""(name, signal, words): one gauge each, absent where the signal is missing."""


class _Families:
    """Gauges as text, in the order they were first used. A client library takes ten times as long for a fleet."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, name: str, words: str, who: str, value: float, **more: str) -> None:
        lines = self._lines.get(name)
        if lines is None:
            full = f"diagnoser_{name}"
            lines = self._lines[name] = [f"# HELP {full} {words}\n# TYPE {full} gauge\n"]
        labels = who + "".join(f',{label}="{_escaped(text)}"' for label, text in more.items())
        shown = floatToGoString(value)  # type: ignore[no-untyped-call]
        lines.append(f"diagnoser_{name}{{{labels}}} {shown}\n")

    def text(self) -> str:
        return "".join("".join(lines) for lines in self._lines.values())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def engine_text(entries: Sequence[Entry]) -> str:
    """All families with all ranks; the same text in Prometheus' and in OpenMetrics' format."""
    families = _Families()
    for entry in entries:
        who = entry.diagnosis.engine
        values = (who.target, who.rank, who.model or "", who.family)
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(LABELS, values, strict=True))
        _verdict(families, entry, labels)
        if entry.diagnosis.verdict.bottleneck != "unreachable":  # what it showed before it died is no news
            _pool(families, entry, labels)
            _numbers(families, entry, labels)
    return families.text()


def _verdict(families: _Families, entry: Entry, who: str) -> None:
    verdict, diagnosis = entry.diagnosis.verdict, entry.diagnosis
    for name in BOTTLENECKS:
        words = "The closed gate: 1 for exactly one bottleneck of a rank."
        families.add("verdict", words, who, float(name == verdict.bottleneck), bottleneck=name)
    for severity in SEVERITIES:
        words = "Severity of the verdict: 1 for exactly one."
        families.add("severity", words, who, float(severity == verdict.severity), severity=severity)
    for state in L2State:
        words = "State of the host tier: 1 for exactly one."
        families.add("l2_state", words, who, float(state is verdict.l2), state=state.value)
    families.add(
        "verdict_info", "The verdict in words, always 1.", who, 1.0, bottleneck=verdict.bottleneck,
        mode=verdict.mode or "", severity=verdict.severity, confidence=verdict.confidence, trend=verdict.trend,
        l2=verdict.l2.value, version=diagnosis.engine.version or "",
    )  # fmt: skip
    words = "0 no bottleneck, 1 unknown, 2 warning, 3 unreachable, 4 critical."
    families.add("verdict_urgency", words, who, float(urgency(diagnosis)))
    families.add("verdict_since_timestamp_seconds", "When the present verdict began.", who, entry.since)
    families.add("verdict_timestamp_seconds", "End of the window evaluated.", who, diagnosis.at)
    for gate, share in verdict.shares.items():
        words = "Part of the window each gate was closed; gate none is the rest."
        families.add("gate_closed_ratio", words, who, share, gate=gate)


def _pool(families: _Families, entry: Entry, who: str) -> None:
    pool = entry.diagnosis.l1
    if pool.capacity is not None:
        families.add("l1_capacity_tokens", "Size of the KV pool.", who, pool.capacity)
    for state, value in zip(STATES, (pool.used, pool.evictable, pool.available), strict=True):
        words = "The three states of the KV pool; where only a range is known, bound low and high differ."
        for bound, end in _ends(value):
            families.add("l1_tokens", words, who, end, state=state, bound=bound)


def _ends(value: Quantity) -> tuple[tuple[str, float], ...]:
    if value is None:
        return ()
    return (("low", value.low), ("high", value.high)) if isinstance(value, Range) else (("low", value), ("high", value))


def _numbers(families: _Families, entry: Entry, who: str) -> None:
    signals, ttft = entry.diagnosis.signals, entry.diagnosis.ttft
    for name, signal, words in SIGNALS:
        found = signals.get(signal)
        if found is not None and found.value is not None and math.isfinite(found.value):
            families.add(name, words, who, found.value)
    for quantile, bucket in () if ttft is None else (("0.5", ttft.p50), ("0.99", ttft.p99)):
        for bound, end in () if bucket is None else zip(("low", "high"), bucket, strict=True):
            words = "Edges of the bucket that the percentile of TTFT lies in."
            families.add("ttft_bucket_seconds", words, who, end, percentile=quantile, bound=bound)
