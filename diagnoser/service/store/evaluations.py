"""Verdicts and key signals over time: one compact row an engine rank."""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from diagnoser.model import Diagnosis
from diagnoser.service.board import Key, key_of
from diagnoser.service.records import VerdictPoint
from diagnoser.service.store.ids import Ids

Series = list[tuple[float, float | None]]


def add(db: sqlite3.Connection, ids: Ids, names: Sequence[str], rows: Sequence[tuple[Diagnosis, bool]]) -> None:
    """Keeps diagnoses; the flag marks the one that stays when rows of a minute are thinned out."""
    layout = ids.layout(names)
    found = [
        (ids.engine(key_of(one)), one.at, ids.verdict(one), int(first), layout, _packed(one, names))
        for one, first in rows
    ]
    db.executemany("INSERT OR REPLACE INTO evaluations VALUES (?, ?, ?, ?, ?, ?)", found)


def _packed(diagnosis: Diagnosis, names: Sequence[str]) -> bytes:
    """The signals as 32-bit floats, NaN where there is no value."""
    signals = diagnosis.signals
    values = (signals[name].value if name in signals else None for name in names)
    return array("f", (math.nan if value is None else value for value in values)).tobytes()


def verdicts(db: sqlite3.Connection, key: Key | None, start: float, end: float, step: float) -> Iterator[VerdictPoint]:
    """The worst verdict of each step; the headline is left empty."""
    where, values = _where(key, start, end)
    columns = "e.target, e.rank, v.bottleneck, v.mode, v.severity, v.confidence, v.l2, max(v.urgency)"
    sql = (
        f"SELECT CAST((x.at - ?) / ? AS INTEGER) AS slot, {columns} FROM evaluations x"
        f" JOIN engines e ON e.id = x.engine JOIN verdicts v ON v.id = x.verdict WHERE {where}"
        " GROUP BY x.engine, slot ORDER BY slot, e.target, e.rank"
    )
    for slot, target, rank, bottleneck, mode, severity, confidence, l2, _ in db.execute(sql, [start, step, *values]):
        yield VerdictPoint(start + slot * step, Key(target, rank), bottleneck, mode, severity, confidence, l2, "")


def signals(
    db: sqlite3.Connection, key: Key, names: Sequence[str], start: float, end: float, step: float
) -> dict[str, Series]:
    """The mean of each signal in each step, None where no row has a value."""
    where, values = _where(key, start, end)
    sql = (
        "SELECT CAST((x.at - ?) / ? AS INTEGER), x.layout, x.signals FROM evaluations x"
        f" JOIN engines e ON e.id = x.engine WHERE {where} ORDER BY x.at"
    )
    layouts = {number: text.split(" ") for number, text in db.execute("SELECT id, names FROM layouts")}
    out: dict[str, Series] = {name: [] for name in names}
    for slot, rows in groupby(db.execute(sql, [start, step, *values]), key=lambda row: row[0]):
        read = [_unpacked(layouts[layout], packed) for _, layout, packed in rows]
        for name, series in out.items():
            found = [row[name] for row in read if not math.isnan(row.get(name, math.nan))]
            series.append((start + slot * step, math.fsum(found) / len(found) if found else None))
    return out


def _unpacked(names: Sequence[str], packed: bytes) -> Mapping[str, float]:
    values = array("f")
    values.frombytes(packed)
    return dict(zip(names, values, strict=True))


def _where(key: Key | None, start: float, end: float) -> tuple[str, list[object]]:
    if key is None:
        return "x.at >= ? AND x.at <= ?", [start, end]
    return "x.at >= ? AND x.at <= ? AND e.target = ? AND e.rank = ?", [start, end, key.target, key.rank]
