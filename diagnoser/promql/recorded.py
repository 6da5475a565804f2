"""Verdicts that a server has already: its own recording rules, read by one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diagnoser.model import Confidence, Diagnosis, EngineId, L2State, PoolState, Severity, SignalValue, Verdict
from diagnoser.promql.records import PREFIX, STATED
from diagnoser.rulebook.rules import Rulebook, VerdictRule
from diagnoser.rulebook.text import fill
from diagnoser.sources.prometheus.api import Series, Server
from diagnoser.sources.prometheus.selectors import selector

READ = ("verdict", "share", "l2_state", *STATED)
SEVERITIES: Mapping[str, Severity] = {"info": "info", "warning": "warning", "critical": "critical"}
CONFIDENCES: Mapping[str, Confidence] = {"high": "high", "medium": "medium", "low": "low"}
UNNAMED = "a recorded verdict that these rules do not know: export the rules again"


@dataclass(slots=True)
class _Seen:
    """What is recorded of one rank."""

    labels: Mapping[str, str]
    verdict: Mapping[str, str] | None = None
    shares: dict[str, float] = field(default_factory=dict)
    l2: Mapping[str, str] | None = None
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The verdicts, the window that the rules are made for (seconds), and what the server warned of."""

    diagnoses: tuple[Diagnosis, ...]
    window: float
    warnings: tuple[str, ...] = ()


async def recorded(server: Server, at: float, match: str, book: Rulebook) -> Recorded | None:
    """What the recording rules say at that time; None where there are none. Raises ServerError."""
    names = f'__name__=~"{PREFIX}({"|".join(READ)}):.+"'
    answer = await server.query(selector(names, match), at)
    ranks: dict[tuple[str, ...], _Seen] = {}
    windows = {one.name.rpartition(":")[2] for one in answer.series}
    if not windows:
        return None
    shown = min(windows, key=_seconds)
    for one in answer.series:
        if one.name.endswith(f":{shown}"):
            _file(ranks, one)
    many = len({(seen.labels.get("job"), seen.labels.get("instance")) for seen in ranks.values()})
    instances = {seen.labels.get("instance") for seen in ranks.values()}
    found = [_diagnosis(s, at, _seconds(shown), book, len(instances) < many) for s in ranks.values() if s.verdict]
    return Recorded(tuple(found), _seconds(shown), answer.warnings)


def _file(ranks: dict[tuple[str, ...], _Seen], one: Series) -> None:
    own = {"__name__", "bottleneck", "mode", "rule", "severity", "confidence", "gate", "state", "check"}
    labels = {key: value for key, value in one.labels.items() if key not in own}
    seen = ranks.setdefault(tuple(f"{key}={labels[key]}" for key in sorted(labels)), _Seen(labels))
    what, value = one.name.removeprefix(PREFIX).rpartition(":")[0], one.values[-1][1]
    if what == "verdict":
        seen.verdict = one.labels
    elif what == "share":
        seen.shares[one.labels.get("gate", "")] = value
    elif what == "l2_state":
        seen.l2 = one.labels
    else:
        seen.values[what] = value


def _diagnosis(seen: _Seen, at: float, window: float, book: Rulebook, by_job: bool) -> Diagnosis:
    labels, verdict = seen.labels, seen.verdict or {}
    row = {name: SignalValue(name, "", value, "", (f"{PREFIX}{name}",)) for name, value in seen.values.items()}
    target = f"{labels.get('instance', '')} {{{labels.get('job', '')}}}" if by_job else labels.get("instance", "")
    capacity, used = seen.values.get("l1_capacity_tokens"), seen.values.get("l1_used_ratio_last")
    held = capacity * used if capacity is not None and used is not None else None
    return Diagnosis(
        engine=EngineId(labels.get("family", "unknown"), target, labels.get("rank", "0"), None, labels.get("model")),
        at=at,
        window_seconds=window,
        scrapes=int(seen.values.get("scrapes", 0)),
        verdict=_verdict(seen, verdict, row, book),
        l1=PoolState(capacity, held),
        l2=None,
        signals=row,
    )


def _verdict(seen: _Seen, labels: Mapping[str, str], row: Mapping[str, SignalValue], book: Rulebook) -> Verdict:
    rule = next((rule for rule in book.verdicts if rule.id == labels.get("rule")), None)
    check = book.check(seen.l2.get("check", "")) if seen.l2 else None
    phrase = check.label if check else "L2 state not observable"
    words = {"l2_phrase": phrase, "l2_sentence": phrase, "mode": labels.get("mode", ""), "last_error": "`up` is 0"}
    shares = {gate: round(share, 4) for gate, share in seen.shares.items() if share > 0}
    return Verdict(
        bottleneck=labels.get("bottleneck", "unknown"),
        severity=SEVERITIES.get(labels.get("severity", ""), "warning"),
        confidence=CONFIDENCES.get(labels.get("confidence", ""), "low"),
        headline=fill(rule.headline, row, words)[0] if rule else UNNAMED,
        mode=labels.get("mode") or None,
        l2=_state(seen.l2),
        shares={**shares, "none": round(max(0.0, 1.0 - sum(shares.values())), 4)},
        because=_because(rule, {**row, **_share_rows(seen)}, words),
        rule=labels.get("rule", ""),
    )


def _share_rows(seen: _Seen) -> dict[str, SignalValue]:
    return {f"share_{gate}": SignalValue(f"share_{gate}", "ratio", value) for gate, value in seen.shares.items()}


def _because(rule: VerdictRule | None, row: Mapping[str, SignalValue], words: Mapping[str, str]) -> tuple[str, ...]:
    texts: Sequence[str] = rule.because if rule else ()
    return tuple(text for text, whole in (fill(one, row, words) for one in texts) if whole and text)[:3]


def _state(labels: Mapping[str, str] | None) -> L2State:
    try:
        return L2State(labels.get("state", "")) if labels else L2State.UNKNOWN
    except ValueError:
        return L2State.UNKNOWN


def _seconds(window: str) -> float:
    """5m, 15s, 1h, 500ms as seconds."""
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    number = window.rstrip("msh")
    return float(number or 0) * units.get(window[len(number) :], 1.0)
