"""One rank's columns as a row of signals, and the diagnosis that its checks lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from diagnoser import l2
from diagnoser.model import CheckResult, Diagnosis, EngineId, Fact, PoolState, SignalValue
from diagnoser.promql.fleet import Fleet
from diagnoser.rulebook.rules import Rulebook
from diagnoser.signals.base import signals
from diagnoser.signals.promql import Cannot
from diagnoser.signals.table import Row
from diagnoser.verdict import Case, decide

UP_IS_ZERO = "the server's `up` is 0 for it"
ABSENT = "the server has no series for it"
UNASKED = "not asked for: only what the verdict rests on is asked of a whole fleet"


@dataclass(frozen=True, slots=True)
class Judging:
    """What the verdicts are about. `full` ranks at most get their whole checklist, the worst first."""

    at: float
    window: float
    step: float
    full: int
    facts: Mapping[str, Fact]


def row_of(index: int, found: Fleet, columns: Mapping[str, Sequence[float | None]]) -> dict[str, SignalValue]:
    out: dict[str, SignalValue] = {}
    for signal in signals():
        value = columns[signal.name][index] if signal.name in columns else None
        why = "" if value is not None else why_unknown(signal.name, found)
        out[signal.name] = SignalValue(signal.name, signal.unit, value, why, ("PromQL",) if value is not None else ())
    for name, values in columns.items():
        if name not in out:
            value = values[index]
            out[name] = SignalValue(name, "ratio", value, "" if value is not None else ABSENT)
    return out


def why_unknown(name: str, found: Fleet) -> str:
    if name in found.failed:
        return found.failed[name]
    ask = next(signal.promql for signal in signals() if signal.name == name)
    if isinstance(ask, Cannot):
        return f"PromQL cannot say it: {ask.reason}"
    return ABSENT if name in found.columns else UNASKED


def engine_of(found: Fleet, index: int) -> EngineId:
    rank = found.ranks[index]
    return EngineId(rank.family, rank.target, rank.rank, None, rank.model)


def pool_of(found: Fleet, index: int) -> PoolState:
    capacity, used = (
        found.columns[name][index] if name in found.columns else None
        for name in ("l1_capacity_tokens", "l1_used_ratio_last")
    )
    held = capacity * used if capacity is not None and used is not None else None
    return PoolState(capacity, held, reason="" if held is not None else "the server does not know the pool's size")


def diagnosis_of(
    engine: EngineId,
    row: Row,
    checks: tuple[CheckResult, ...],
    words: Mapping[str, str],
    book: Rulebook,
    how: Judging,
) -> Diagnosis:
    settled = l2.settle(checks, row, None, book)
    words = {**words, "l2_phrase": settled.phrase, "l2_sentence": settled.reason}
    case = Case(row, checks, words, engine.family, how.facts, settled.state)
    verdict, findings, remedies, not_remedies = decide(case, book)
    return Diagnosis(
        engine=engine,
        at=how.at,
        window_seconds=how.window,
        scrapes=int(row["scrapes"].value or 0),
        verdict=replace(verdict, l2_reason=settled.reason, l2_missing=settled.missing),
        l1=PoolState(),
        l2=None,
        signals=row,
        checks=checks,
        findings=findings,
        remedies=remedies,
        not_remedies=not_remedies,
        facts=how.facts,
        more_l2=settled.more,
    )
