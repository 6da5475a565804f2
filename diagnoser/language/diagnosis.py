"""A diagnosis in the reader's language: every sentence of it, no number and no name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from diagnoser.language import Language, told
from diagnoser.model import CheckResult, Diagnosis, Evidence, Remedy, Ttft, Verdict, WhatIf

Say = Callable[[str], str]


def in_language(diagnosis: Diagnosis, language: Language) -> Diagnosis:
    """The same diagnosis with its sentences told in that language; itself in English."""
    if language == "en":
        return diagnosis

    def say(text: str) -> str:
        return told(text, language)

    l2, more, ttft = diagnosis.l2, diagnosis.more_l2, diagnosis.ttft
    return replace(
        diagnosis,
        verdict=_verdict(diagnosis.verdict, say),
        l1=replace(diagnosis.l1, reason=say(diagnosis.l1.reason)),
        l2=None if l2 is None else replace(l2, reason=say(l2.reason)),
        signals={
            name: replace(signal, missing_reason=say(signal.missing_reason)) if signal.missing_reason else signal
            for name, signal in diagnosis.signals.items()
        },
        checks=tuple(_check(check, say) for check in diagnosis.checks),
        findings=tuple(
            replace(one, text=say(one.text), evidence=_evidence(one.evidence, say)) for one in diagnosis.findings
        ),
        remedies=tuple(remedy_in(one, say) for one in diagnosis.remedies),
        not_remedies=tuple(map(say, diagnosis.not_remedies)),
        more_l2=None if more is None else replace(more, reason=say(more.reason)),
        ttft=None if ttft is None else _ttft(ttft, say),
        what_if=tuple(_what_if(one, say) for one in diagnosis.what_if),
    )


def _verdict(verdict: Verdict, say: Say) -> Verdict:
    return replace(
        verdict,
        headline=say(verdict.headline),
        because=tuple(map(say, verdict.because)),
        l2_reason=say(verdict.l2_reason),
        l2_missing=tuple(map(say, verdict.l2_missing)),
    )


def _check(check: CheckResult, say: Say) -> CheckResult:
    return replace(
        check,
        label=say(check.label),
        question=say(check.question),
        reason=say(check.reason),
        evidence=_evidence(check.evidence, say),
    )


def _evidence(evidence: Iterable[Evidence], say: Say) -> tuple[Evidence, ...]:
    return tuple(
        replace(one, missing_reason=say(one.missing_reason), series=tuple(map(say, one.series))) for one in evidence
    )


def remedy_in(remedy: Remedy, say: Say) -> Remedy:
    """A remedy; a flag without words in it stays what it is."""
    return replace(
        remedy,
        action=say(remedy.action),
        flag=say(remedy.flag),
        effect=say(remedy.effect),
        side_effect=say(remedy.side_effect),
    )


def _ttft(ttft: Ttft, say: Say) -> Ttft:
    parts = tuple(replace(part, reason=say(part.reason)) for part in ttft.parts)
    return replace(ttft, parts=parts, basis=say(ttft.basis), sentences=tuple(map(say, ttft.sentences)))


def _what_if(one: WhatIf, say: Say) -> WhatIf:
    return replace(
        one,
        change=say(one.change),
        reason=say(one.reason),
        queue=say(one.queue),
        assumption=say(one.assumption),
        error=say(one.error),
    )
