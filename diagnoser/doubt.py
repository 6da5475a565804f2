"""What a partial answer of a metrics server cannot prove becomes unknown.

A sample that is there is true, so a "yes" and a named bottleneck stand, with low confidence. Every "no", "no
bottleneck" and "L2 absent" may rest on a series that was left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from diagnoser.model import Answer, CheckResult, Diagnosis, Finding, L2State, Verdict

PARTIAL = "partial_data"
"""Code of the finding, and mode of the verdict that is unknown for it."""


def doubt(diagnoses: Sequence[Diagnosis], doubted: Mapping[str, tuple[str, ...]]) -> tuple[Diagnosis, ...]:
    """The diagnoses, those of `doubted` targets (with the server's warnings) reduced to what was proven."""
    return tuple(_doubt(one, doubted[one.engine.target]) if one.engine.target in doubted else one for one in diagnoses)


def _doubt(diagnosis: Diagnosis, warnings: Sequence[str]) -> Diagnosis:
    said = f"the metrics server warns that its answer may be incomplete: {warnings[0]}"
    verdict = _verdict(diagnosis.verdict, said)
    unknown = verdict.bottleneck == "unknown"
    return replace(
        diagnosis,
        verdict=verdict,
        checks=tuple(_unproven(check) for check in diagnosis.checks),
        findings=(*diagnosis.findings, Finding(PARTIAL, "warning", said, ())),
        remedies=() if unknown else diagnosis.remedies,
    )


def _verdict(verdict: Verdict, said: str) -> Verdict:
    verdict = replace(verdict, confidence="low")
    if verdict.l2 is L2State.ABSENT:
        verdict = replace(verdict, l2=L2State.UNKNOWN, l2_reason=said)
    if verdict.bottleneck != "none":
        return verdict
    return replace(
        verdict,
        bottleneck="unknown",
        mode=PARTIAL,
        severity="warning",
        headline="UNKNOWN: the metrics server gave partial data",
        because=(f"{said}.", f"In what it gave nothing is wrong ({verdict.headline})."),
    )


def _unproven(check: CheckResult) -> CheckResult:
    if check.answer is not Answer.NO:
        return check
    return replace(check, answer=Answer.UNKNOWN, reason=f"{check.reason}, but the server's answer may be incomplete")
