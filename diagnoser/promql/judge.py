"""Columns of signals -> gates -> checks -> verdicts, for ten thousand ranks at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from diagnoser import gates, l2
from diagnoser.checks import answer_all, answers_by_check
from diagnoser.model import Answer, CheckResult, Diagnosis, EngineId, Fact, PoolState, SignalValue
from diagnoser.promql.fleet import Fleet
from diagnoser.promql.plan import SHOWN, deciding_checks
from diagnoser.rulebook.rules import Rulebook
from diagnoser.signals import fleet as peers
from diagnoser.signals.base import signals
from diagnoser.signals.promql import Cannot
from diagnoser.signals.table import Row, Table
from diagnoser.verdict import Case, decide

UP_IS_ZERO = "the server's `up` is 0 for it"
PEERS = "fuller or busier than its peers"
MODEL = ("model_used_min_ratio", "model_used_max_ratio", "model_used_ratio", "model_free_tokens")
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


def judge(found: Fleet, book: Rulebook, how: Judging) -> tuple[Diagnosis, ...]:
    """One diagnosis a rank. Only the worst `full` with a bottleneck carry the checklist."""
    suspects = found.suspects()
    columns: dict[str, Sequence[float | None]] = {**found.columns, **_gates(found, suspects, book, how)}
    columns |= _peers(found)
    checks = (*deciding_checks(book), *(c for c in book.checks if c.finding == "imbalance"))
    answered = answers_by_check(Table(columns, len(found.ranks)), checks)
    brief = _Brief(found, columns, answered, book, how)
    diagnoses = [brief.of(i) for i in range(len(found.ranks))]
    bound = (i for i, one in enumerate(diagnoses) if one.verdict.bottleneck != "none")
    worst = sorted(bound, key=lambda i: columns["blocked_ratio"][i] or 0.0, reverse=True)[: how.full]
    for i, diagnosis in _whole(worst, found, columns, book, how).items():
        diagnoses[i] = diagnosis
    return tuple(diagnoses)


def _gates(found: Fleet, suspects: Sequence[int], book: Rulebook, how: Judging) -> dict[str, list[float | None]]:
    """share_, lead_, excluded_ and blocked_ of every rank: of suspects from their steps, of the others none."""
    names, rows = gates.names(book), len(found.ranks)
    fine = gates.never_waited(book, 0.0)
    out: dict[str, list[float | None]] = {name: [fine[name]] * rows for name in names}
    for name in names:
        for i in suspects:
            out[name][i] = None
        for i, pages in enumerate(found.columns["scrapes"]):
            if (pages or 0) < 2:
                out[name][i] = None
    known = [i for i in suspects if (found.columns["scrapes"][i] or 0) >= 2]
    for i, row in zip(known, _attributed(found, known, book, how), strict=True):
        for name, signal in row.items():
            out[name][i] = signal.value
    return out


def _attributed(found: Fleet, waited: Sequence[int], book: Rulebook, how: Judging) -> list[dict[str, SignalValue]]:
    where: list[gates.Where] = []
    columns: dict[str, list[float | None]] = {name: [] for name in found.steps}
    queue = found.steps.get("queue_present_ratio", {})
    for position, index in enumerate(waited):
        for at in sorted(queue.get(index, ())):
            if at - how.step < how.at - how.window - how.step / 2:
                continue
            where.append((position, at - how.step, at))
            for name, series in found.steps.items():
                columns[name].append(series.get(index, {}).get(at))
    signals_of = {name: [values[i] for i in waited] for name, values in found.columns.items()}
    return gates.attribute_columns(columns, where, [(how.at, how.window)] * len(waited), signals_of, book)


def _whole(
    which: Sequence[int],
    found: Fleet,
    columns: Mapping[str, Sequence[float | None]],
    book: Rulebook,
    how: Judging,
) -> dict[int, Diagnosis]:
    """Diagnoses with every check and its evidence."""
    rows: list[Row] = [_row(i, found, columns) for i in which]
    engines = [_engine(found, i) for i in which]
    words = [{"target": e.target, "engine": e.family, "mode": "", "last_error": UP_IS_ZERO} for e in engines]
    checks = answer_all(rows, words, book)
    return {
        i: replace(_diagnosis(engine, row, answered, word, book, how), l1=_pool(found, i))
        for i, engine, row, answered, word in zip(which, engines, rows, checks, words, strict=True)
    }


def _peers(found: Fleet) -> dict[str, list[float | None]]:
    """Every rank among its peers, as signals/fleet.py compares them."""
    names = ("l1_used_ratio_mean", "running_mean_requests", "l1_capacity_tokens")
    columns = {name: found.columns[name] for name in names if name in found.columns}
    rows: list[Row] = [
        {name: SignalValue(name, "", value) for name, values in columns.items() if (value := values[i]) is not None}
        for i in range(len(found.ranks))
    ]
    engines = [_engine(found, i) for i in range(len(found.ranks))]
    compared = peers.compare(engines, [0.0] * len(engines), rows)
    return {name: [row[name].value for row in compared] for name in peers.NAMES}


def _row(index: int, found: Fleet, columns: Mapping[str, Sequence[float | None]]) -> dict[str, SignalValue]:
    out: dict[str, SignalValue] = {}
    for signal in signals():
        value = columns[signal.name][index] if signal.name in columns else None
        why = "" if value is not None else _why(signal.name, found)
        out[signal.name] = SignalValue(signal.name, signal.unit, value, why, ("PromQL",) if value is not None else ())
    for name, values in columns.items():
        if name not in out:
            value = values[index]
            out[name] = SignalValue(name, "ratio", value, "" if value is not None else ABSENT)
    return out


def _why(name: str, found: Fleet) -> str:
    if name in found.failed:
        return found.failed[name]
    ask = next(signal.promql for signal in signals() if signal.name == name)
    if isinstance(ask, Cannot):
        return f"PromQL cannot say it: {ask.reason}"
    return ABSENT if name in found.columns else UNASKED


def _engine(found: Fleet, index: int) -> EngineId:
    rank = found.ranks[index]
    return EngineId(rank.family, rank.target, rank.rank, None, rank.model)


def _pool(found: Fleet, index: int) -> PoolState:
    capacity, used = (
        found.columns[name][index] if name in found.columns else None
        for name in ("l1_capacity_tokens", "l1_used_ratio_last")
    )
    held = capacity * used if capacity is not None and used is not None else None
    return PoolState(capacity, held, reason="" if held is not None else "the server does not know the pool's size")


def _diagnosis(
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


class _Brief:
    """Verdicts without the checklist. Ranks that gave the same answers have the same verdict but for their numbers."""

    def __init__(
        self,
        found: Fleet,
        columns: Mapping[str, Sequence[float | None]],
        answered: Mapping[str, Sequence[Answer]],
        book: Rulebook,
        how: Judging,
    ) -> None:
        self._found, self._columns, self._book, self._how = found, columns, book, how
        self._names = tuple(answered)
        self._keys = list(zip(*(answered[name] for name in self._names), strict=True))
        self._known: dict[tuple[str, tuple[Answer, ...]], Diagnosis] = {}
        self._shares = [(gate, columns[f"share_{gate}"]) for gate in book.gate_names()]
        self._shown = [(name, columns[name]) for name in (*SHOWN, *MODEL) if name in columns]

    def of(self, i: int) -> Diagnosis:
        """The diagnosis of rank i."""
        engine, answers = _engine(self._found, i), self._keys[i]
        key = (engine.family, answers)
        if key not in self._known:
            self._known[key] = self._first(engine, answers, i)
        alike = self._known[key]
        row = {name: SignalValue(name, "", value) for name, values in self._shown if (value := values[i]) is not None}
        shares = {gate: round(share, 4) for gate, values in self._shares if (share := values[i])}
        none = {"none": round(max(0.0, 1.0 - sum(shares.values())), 4)}
        return replace(
            alike,
            engine=engine,
            scrapes=int(self._found.columns["scrapes"][i] or 0),
            verdict=replace(alike.verdict, shares={**shares, **none}),
            l1=_pool(self._found, i),
            signals=row,
        )

    def _first(self, engine: EngineId, answers: Sequence[Answer], i: int) -> Diagnosis:
        given = dict(zip(self._names, answers, strict=True))
        checks = tuple(
            CheckResult(c.id, c.question, given[c.id], c.text[given[c.id].value], (), c.severity, c.label, c.kind)
            for c in self._book.checks
            if c.id in given
        )
        row = _row(i, self._found, self._columns)
        words = {"target": engine.target, "engine": engine.family, "mode": "", "last_error": UP_IS_ZERO}
        one = _diagnosis(engine, row, checks, words, self._book, self._how)
        hot = tuple(replace(f, text=PEERS, evidence=()) for f in one.findings if f.code == "imbalance")
        silent = one.verdict.bottleneck in ("unknown", "unreachable")
        verdict = replace(one.verdict, because=one.verdict.because if silent else (), l2_reason="", l2_missing=())
        return replace(one, verdict=verdict, checks=(), findings=hot, remedies=(), not_remedies=(), more_l2=None)
