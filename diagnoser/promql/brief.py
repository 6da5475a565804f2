"""Verdicts without the checklist, for the many: ranks that gave the same answers differ in their numbers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from diagnoser.model import Answer, CheckResult, Diagnosis, EngineId, SignalValue
from diagnoser.promql.fleet import Fleet
from diagnoser.promql.onerank import UP_IS_ZERO, Judging, diagnosis_of, engine_of, pool_of, row_of
from diagnoser.promql.plan import SHOWN
from diagnoser.rulebook.rules import Rulebook

PEERS = "fuller or busier than its peers"
MODEL = ("model_used_min_ratio", "model_used_max_ratio", "model_used_ratio", "model_free_tokens")


class Brief:
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
        engine, answers = engine_of(self._found, i), self._keys[i]
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
            l1=pool_of(self._found, i),
            signals=row,
        )

    def _first(self, engine: EngineId, answers: Sequence[Answer], i: int) -> Diagnosis:
        given = dict(zip(self._names, answers, strict=True))
        checks = tuple(
            CheckResult(c.id, c.question, given[c.id], c.text[given[c.id].value], (), c.severity, c.label, c.kind)
            for c in self._book.checks
            if c.id in given
        )
        row = row_of(i, self._found, self._columns)
        words = {"target": engine.target, "engine": engine.family, "mode": "", "last_error": UP_IS_ZERO}
        one = diagnosis_of(engine, row, checks, words, self._book, self._how)
        hot = tuple(replace(f, text=PEERS, evidence=()) for f in one.findings if f.code == "imbalance")
        silent = one.verdict.bottleneck in ("unknown", "unreachable")
        verdict = replace(one.verdict, because=one.verdict.because if silent else (), l2_reason="", l2_missing=())
        return replace(one, verdict=verdict, checks=(), findings=hot, remedies=(), not_remedies=(), more_l2=None)
