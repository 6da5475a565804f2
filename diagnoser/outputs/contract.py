"""The output contract as plain data: what --format json and jsonl print, and diagnoser's JSON Schema describes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from diagnoser.model import Diagnosis, Evidence, MoreL2, Quantity, Range, TierState, Ttft, WhatIf

SCHEMA_VERSION = 1
SCHEMA = Path(__file__).parents[1] / "schema" / "diagnosis.schema.json"
"""JSON Schema (draft 2020-12) of one diagnosis; $defs/report is the document of --format json."""


def as_data(diagnosis: Diagnosis) -> dict[str, Any]:
    """One diagnosis as JSON-ready data. Numbers that are not finite become null."""
    verdict, engine = diagnosis.verdict, diagnosis.engine
    return {
        "schema_version": SCHEMA_VERSION,
        "at": round(diagnosis.at, 3),
        "window_seconds": diagnosis.window_seconds,
        "scrapes": diagnosis.scrapes,
        "engine": {
            "family": engine.family,
            "version": engine.version,
            "target": engine.target,
            "model": engine.model,
            "rank": engine.rank,
        },
        "verdict": {
            "bottleneck": verdict.bottleneck,
            "mode": verdict.mode,
            "l2": verdict.l2.value,
            "shares": dict(verdict.shares),
            "trend": verdict.trend,
            "severity": verdict.severity,
            "confidence": verdict.confidence,
            "headline": verdict.headline,
            "because": list(verdict.because),
            "rule": verdict.rule,
            "l2_reason": verdict.l2_reason,
            "l2_missing": list(verdict.l2_missing),
        },
        "l1": _pool(diagnosis),
        "l2": _tier(diagnosis.l2),
        "would_more_l2_help": _more_l2(diagnosis.more_l2),
        "ttft": _ttft(diagnosis.ttft),
        "checks": [
            {
                "id": c.id,
                "label": c.label,
                "question": c.question,
                "answer": c.answer.value,
                "severity": c.severity,
                "kind": c.kind,
                "reason": c.reason,
                "evidence": [_evidence(e) for e in c.evidence],
            }
            for c in diagnosis.checks
        ],
        "findings": [
            {"code": f.code, "severity": f.severity, "text": f.text, "evidence": [_evidence(e) for e in f.evidence]}
            for f in diagnosis.findings
        ],
        "remedies": [
            {"id": r.id, "action": r.action, "flag": r.flag, "effect": r.effect, "side_effect": r.side_effect}
            for r in diagnosis.remedies
        ],
        "not_remedies": list(diagnosis.not_remedies),
        "what_if": [_what_if(one) for one in diagnosis.what_if],
        "facts": {f.name: {"value": f.value, "origin": f.origin} for f in diagnosis.facts.values()},
        "signals": {
            s.name: {
                "value": _number(s.value),
                "unit": s.unit,
                "missing_reason": s.missing_reason,
                "series": list(s.series),
            }
            for s in diagnosis.signals.values()
        },
    }


def _what_if(one: WhatIf) -> dict[str, Any]:
    return {
        "id": one.id,
        "change": one.change,
        "helps": one.helps,
        "reason": one.reason,
        "concurrency": _number(one.concurrency),
        "rho": _number(one.rho),
        "queue_growth": _number(one.queue_growth),
        "queue": one.queue,
        "assumption": one.assumption,
        "error": one.error,
        "pool_tokens": _number(one.pool_tokens),
        "pool_low_tokens": _number(one.pool_low_tokens),
        "pool_high_tokens": _number(one.pool_high_tokens),
    }


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)


def _quantity(value: Quantity) -> float | list[float] | None:
    if not isinstance(value, Range):
        return _number(value)
    return [round(value.low, 1), round(value.high, 1)] if math.isfinite(value.low + value.high) else None


def _pool(diagnosis: Diagnosis) -> dict[str, Any]:
    pool = diagnosis.l1
    return {
        "pool": pool.name,
        "capacity_tokens": _number(pool.capacity),
        "used_tokens": _quantity(pool.used),
        "evictable_tokens": _quantity(pool.evictable),
        "available_tokens": _quantity(pool.available),
        "reason": pool.reason,
    }


def _tier(tier: TierState | None) -> dict[str, Any] | None:
    if tier is None:
        return None
    return {
        "backend": tier.backend,
        "present": tier.presence,
        "unit": tier.unit,
        "capacity": _number(tier.capacity),
        "resident": _number(tier.resident),
        "resident_upper": _number(tier.resident_upper),
        "governs_admission": tier.governs_admission,
        "reason": tier.reason,
        "scope": tier.scope,
    }


def _more_l2(more: MoreL2 | None) -> dict[str, str] | None:
    return None if more is None else {"answer": more.answer.value, "reason": more.reason}


def _ttft(ttft: Ttft | None) -> dict[str, Any] | None:
    if ttft is None:
        return None
    return {
        "mean_seconds": _number(ttft.mean_seconds),
        "p50": None if ttft.p50 is None else [_number(edge) for edge in ttft.p50],
        "p99": None if ttft.p99 is None else [_number(edge) for edge in ttft.p99],
        "parts": [
            {
                "name": part.name,
                "kind": part.kind,
                "seconds": _number(part.seconds),
                "share": _number(part.share),
                "reason": part.reason,
                "series": list(part.series),
            }
            for part in ttft.parts
        ],
        "basis": ttft.basis,
        "silent_seconds": _number(ttft.silent_seconds),
        "wait_estimate_seconds": _number(ttft.wait_estimate_seconds),
        "queue_age_estimate_seconds": _number(ttft.queue_age_estimate_seconds),
        "sentences": list(ttft.sentences),
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "signal": evidence.signal,
        "value": _number(evidence.value),
        "unit": evidence.unit,
        "op": evidence.op,
        "threshold": evidence.threshold,
        "series": list(evidence.series),
        "missing_reason": evidence.missing_reason,
    }
