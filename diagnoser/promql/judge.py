"""Columns of signals -> gates -> checks -> verdicts, for ten thousand ranks at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from diagnoser import gates, l2
from diagnoser.checks import answer_all, answers_by_check
from diagnoser.model import Answer, CheckResult, Diagnosis, EngineId, Fact, PoolState, SignalValue
from diagnoser.promql.fleet import Fleet
from diagnoser.promql.plan import SHOWN, STANDS, deciding_checks
from diagnoser.rulebook.conditions import holds
from diagnoser.rulebook.rules import Rulebook, VerdictRule
from diagnoser.signals import fleet as peers
from diagnoser.signals.base import signals
from diagnoser.signals.promql import Cannot
from diagnoser.signals.table import Row, Table
from diagnoser.verdict import Case, decide

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
    """One diagnosis a rank. Those without a bottleneck carry no checklist."""
    columns: dict[str, Sequence[float | None]] = {**found.columns, **_gates(found, book, how)}
    table = Table(columns, len(found.ranks))
    answered = answers_by_check(table, deciding_checks(book))
    rules = _rules(answered, len(found.ranks), book)
    worst = sorted(
        (i for i, rule in enumerate(rules) if rule.bottleneck != "none"),
        key=lambda i: columns["blocked_ratio"][i] or 0.0,
        reverse=True,
    )[: how.full]
    whole = _whole(worst, found, columns, book, how)
    return tuple(
        whole.get(i) or _brief(i, found, columns, {c: answers[i] for c, answers in answered.items()}, rule, book, how)
        for i, rule in enumerate(rules)
    )


def _gates(found: Fleet, book: Rulebook, how: Judging) -> dict[str, list[float | None]]:
    """share_, lead_, excluded_ and blocked_ of every rank: from the steps where somebody waited, else none."""
    waited = sorted({index for series in found.steps.values() for index in series})
    standing = found.columns.get(STANDS, [])
    known = found.columns.get("queue_metrics_present", [])
    out: dict[str, list[float | None]] = {name: [None] * len(found.ranks) for name in gates.names(book)}
    for index in range(len(found.ranks)):
        if known and known[index] == 1 and (found.columns["scrapes"][index] or 0) >= 2:
            stood = (standing[index] if standing else None) or 0.0
            for name, value in gates.never_waited(book, min(1.0, stood)).items():
                out[name][index] = value
    for index, row in zip(waited, _attributed(found, waited, book, how), strict=True):
        for name, signal in row.items():
            out[name][index] = signal.value
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


def _rules(answered: Mapping[str, Sequence[Answer]], rows: int, book: Rulebook) -> list[VerdictRule]:
    """The entry of the decision list for every rank; many give the same answers."""
    known: dict[tuple[str, ...], VerdictRule] = {}
    names, out = list(answered), []
    for row in zip(*(answered[name] for name in names), strict=True) if rows else ():
        key = tuple(answer.value for answer in row)
        if key not in known:
            answers = dict(zip(names, key, strict=True))
            known[key] = next(rule for rule in book.verdicts if holds(rule.when, answers))
        out.append(known[key])
    return out


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
    rows = [{**row, **more} for row, more in zip(rows, _peers(found, which), strict=True)]
    words = [
        {"target": e.target, "engine": e.family, "mode": "", "last_error": "the server's `up` is 0 for it"}
        for e in engines
    ]
    checks = answer_all(rows, words, book)
    return {
        i: _diagnosis(engine, row, answered, word, book, how)
        for i, engine, row, answered, word in zip(which, engines, rows, checks, words, strict=True)
    }


def _peers(found: Fleet, which: Sequence[int]) -> list[dict[str, SignalValue]]:
    names = ("l1_used_ratio_mean", "running_mean_requests", "l1_capacity_tokens")
    rows: list[Row] = [
        {n: SignalValue(n, "", found.columns[n][i]) for n in names if n in found.columns}
        for i in range(len(found.ranks))
    ]
    engines = [_engine(found, i) for i in range(len(found.ranks))]
    compared = peers.compare(engines, [0.0] * len(engines), rows)
    return [compared[i] for i in which]


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


def _pool(value: Mapping[str, float | None]) -> PoolState:
    capacity, used = value.get("l1_capacity_tokens"), value.get("l1_used_ratio_last")
    held = capacity * used if capacity is not None and used is not None else None
    return PoolState(capacity, held, reason="" if held is not None else "the pool's size was not asked for")


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
        l1=_pool({name: value.value for name, value in row.items()}),
        l2=None,
        signals=row,
        checks=checks,
        findings=findings,
        remedies=remedies,
        not_remedies=not_remedies,
        facts=how.facts,
        more_l2=settled.more,
    )


def _brief(
    index: int,
    found: Fleet,
    columns: Mapping[str, Sequence[float | None]],
    answers: Mapping[str, Answer],
    rule: VerdictRule,
    book: Rulebook,
    how: Judging,
) -> Diagnosis:
    """The verdict with the numbers of a table, without the checklist."""
    known = (name for name in (*SHOWN, *gates.names(book)) if name in columns)
    row: Row = {n: SignalValue(n, "", value) for n in known if (value := columns[n][index]) is not None}
    by_value = {check: answer.value for check, answer in answers.items()}
    checks = tuple(
        CheckResult(check.id, check.question, answers[check.id], "", (), check.severity, check.label, check.kind)
        for check in book.checks
        if check.id in by_value
    )
    words = {"target": "", "engine": "", "mode": "", "last_error": "the server's `up` is 0 for it"}
    one = _diagnosis(_engine(found, index), {**row, "scrapes": _scrapes(found, index)}, checks, words, book, how)
    return replace(one, checks=(), findings=(), remedies=(), not_remedies=())


def _scrapes(found: Fleet, index: int) -> SignalValue:
    return SignalValue("scrapes", "pages", found.columns["scrapes"][index])
