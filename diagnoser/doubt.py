"""What a partial answer of a metrics server cannot prove becomes unknown.

A sample that is there is true, so a "yes" and a named bottleneck stand, with low confidence. Every "no", "no
bottleneck" and "L2 absent" may rest on a series that was left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from diagnoser.model import Answer, CheckResult, Diagnosis, Finding, L2State, Verdict

PARTIAL, FAILED = "partial_data", "no_answer"
"""Codes of the findings, and modes of the verdicts that are unknown for them."""


def doubt(
    diagnoses: Sequence[Diagnosis], doubted: Mapping[str, tuple[str, ...]], failed: Mapping[str, str]
) -> tuple[Diagnosis, ...]:
    """The diagnoses, reduced to what was proven: of `doubted` targets (with the server's warnings), and of `failed`
    ones, whose query failed with that error.
    """
    return tuple(_doubt(one, doubted.get(one.engine.target), failed.get(one.engine.target)) for one in diagnoses)


def _doubt(diagnosis: Diagnosis, warnings: Sequence[str] | None, error: str | None) -> Diagnosis:
    if error is not None:
        verdict, said = _failed(diagnosis.verdict, error), error
    elif warnings is not None:
        said = f"the metrics server warns that its answer may be incomplete: {warnings[0]}"
        verdict = _partial(diagnosis.verdict, said)
    else:
        return diagnosis
    return replace(
        diagnosis,
        verdict=verdict,
        checks=tuple(_unproven(check) for check in diagnosis.checks),
        findings=(*diagnosis.findings, Finding(FAILED if error else PARTIAL, "warning", said)),
        remedies=() if verdict.bottleneck == "unknown" else diagnosis.remedies,
    )


def _failed(verdict: Verdict, error: str) -> Verdict:
    """Nothing is known of an engine that the metrics server did not answer for; it is not unreachable."""
    headline = "UNKNOWN: the metrics server did not answer for this engine"
    return _unknown(verdict, FAILED, headline, (error,))


def _partial(verdict: Verdict, said: str) -> Verdict:
    verdict = replace(verdict, confidence="low")
    if verdict.l2 is L2State.ABSENT:
        verdict = replace(verdict, l2=L2State.UNKNOWN, l2_reason=said)
    if verdict.bottleneck != "none":
        return verdict
    because = (f"{said}.", f"In what it gave nothing is wrong ({verdict.headline}).")
    headline = "UNKNOWN: the metrics server gave partial data"
    return _unknown(verdict, PARTIAL, headline, because)


def _unknown(verdict: Verdict, mode: str, headline: str, because: tuple[str, ...]) -> Verdict:
    return replace(
        verdict,
        bottleneck="unknown",
        mode=mode,
        severity="warning",
        confidence="low",
        headline=headline,
        because=because,
    )


def _unproven(check: CheckResult) -> CheckResult:
    if check.answer is not Answer.NO:
        return check
    return replace(check, answer=Answer.UNKNOWN, reason=f"{check.reason}, but the server's answer may be incomplete")
