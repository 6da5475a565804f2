"""What the rule files hold once read: thresholds, gates, checks, verdicts, remedies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from diagnoser.errors import RuleError
from diagnoser.model import Severity
from diagnoser.rulebook.conditions import Condition


@dataclass(frozen=True, slots=True)
class Threshold:
    """One number (or list) with its unit and the reason for it. Lives once, in rules/thresholds.yaml."""

    name: str
    value: float | tuple[float, ...]
    unit: str
    reason: str


@dataclass(frozen=True, slots=True)
class Gate:
    """One sign that a gate keeps the head of the queue out. Evaluated in order for every interval; the first that
    holds has it.

    `gate` is the gate it stands for; a gate may have several signs, the certain ones before the inferred ones.
    `whole` counts the whole interval, not only the part with a queue (a hung engine has no queue to show).
    `when` None closes by elimination: every gate before it was found open.
    """

    id: str
    gate: str
    title: str
    when: Condition | None
    whole: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Check:
    """One question. yes: `yes` holds. no: `no` holds, or, without a `no`, `yes` is false. Otherwise unknown."""

    id: str
    label: str
    kind: str
    order: int
    question: str
    yes: Condition
    no: Condition | None
    evidence: tuple[str, ...]
    text: Mapping[str, str]
    severity: Severity
    hold: str
    rationale: str
    source: str
    unknown: str
    doc: str
    finding: str = ""
    path: str = ""
    settles: Mapping[str, str] = field(default_factory=dict)
    """What a yes settles, by topic: `l2` (the state of the host tier), `more_l2` (would more of it help?).

    The first yes in the order of the checklist counts, and its reason is the argument.
    """


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """One entry of the decision list: the first whose `when` holds over the check answers gives the verdict."""

    id: str
    bottleneck: str
    mode: str | None
    when: Condition
    headline: str
    because: tuple[str, ...]
    severity: tuple[tuple[Severity, Condition | None], ...]
    direct: tuple[str, ...]
    exclude: tuple[str, ...]
    suspected: Condition | None
    remedies: tuple[str, ...]
    not_remedies: tuple[tuple[str, Condition | None], ...]
    meaning: str


@dataclass(frozen=True, slots=True)
class RemedyRule:
    """One remedy; `flags` by engine family. Left out where the family has no flag or a fact says it is done already."""

    id: str
    action: str
    flags: Mapping[str, str]
    effect: str
    side_effect: str
    done_if: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All rules that could be read, and what was wrong with the others."""

    thresholds: Mapping[str, Threshold]
    gates: tuple[Gate, ...]
    checks: tuple[Check, ...]
    verdicts: tuple[VerdictRule, ...]
    remedies: Mapping[str, RemedyRule]
    errors: tuple[RuleError, ...] = field(default=())

    def number(self, name: str) -> float:
        """A scalar threshold."""
        value = self.thresholds[name].value
        return value[0] if isinstance(value, tuple) else value

    def params(self) -> Mapping[str, float | tuple[float, ...]]:
        """All thresholds as parameters for signals."""
        return {t.name: t.value for t in self.thresholds.values()}

    def gate_names(self) -> tuple[str, ...]:
        """Every gate once, in order."""
        return tuple(dict.fromkeys(gate.gate for gate in self.gates))

    def check(self, check_id: str) -> Check | None:
        """The check of that id."""
        return next((c for c in self.checks if c.id == check_id), None)
