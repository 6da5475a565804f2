"""Columns of signals -> gates -> checks -> verdicts, for ten thousand ranks at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from diagnoser import gates
from diagnoser.checks import answer_all, answers_by_check
from diagnoser.model import Diagnosis, SignalValue
from diagnoser.promql.brief import Brief
from diagnoser.promql.fleet import Fleet
from diagnoser.promql.onerank import UP_IS_ZERO, Judging, diagnosis_of, engine_of, pool_of, row_of
from diagnoser.promql.plan import deciding_checks
from diagnoser.rulebook.rules import Rulebook
from diagnoser.signals import fleet as peers
from diagnoser.signals.table import Row, Table

__all__ = ["Judging", "judge"]


def judge(found: Fleet, book: Rulebook, how: Judging) -> tuple[Diagnosis, ...]:
    """One diagnosis a rank. Only the worst `full` with a bottleneck carry the checklist."""
    suspects = found.suspects()
    columns: dict[str, Sequence[float | None]] = {**found.columns, **_gates(found, suspects, book, how)}
    columns |= _peers(found)
    checks = (*deciding_checks(book), *(c for c in book.checks if c.finding == "imbalance"))
    answered = answers_by_check(Table(columns, len(found.ranks)), checks)
    brief = Brief(found, columns, answered, book, how)
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
    rows: list[Row] = [row_of(i, found, columns) for i in which]
    engines = [engine_of(found, i) for i in which]
    words = [{"target": e.target, "engine": e.family, "mode": "", "last_error": UP_IS_ZERO} for e in engines]
    checks = answer_all(rows, words, book)
    return {
        i: replace(diagnosis_of(engine, row, answered, word, book, how), l1=pool_of(found, i))
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
    engines = [engine_of(found, i) for i in range(len(found.ranks))]
    compared = peers.compare(engines, [0.0] * len(engines), rows)
    return {name: [row[name].value for row in compared] for name in peers.NAMES}
