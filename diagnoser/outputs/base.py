"""What an output is, what it is given, and which diagnosis is the worst."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from diagnoser.model import Diagnosis


@dataclass(frozen=True, slots=True)
class Look:
    """How the reader sees it: columns, whether colour and box characters can be shown, and how much is asked for.

    `height` rows fit on the screen, 0 if there is none: text is shortened to fit. `terse` 0 to 2 is how much it is.
    """

    width: int = 80
    colour: bool = False
    unicode: bool = True
    verbose: bool = False
    height: int = 0
    terse: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant of a recording for one engine rank: what a timeline needs of a diagnosis."""

    at: float
    target: str
    rank: str
    bottleneck: str
    headline: str
    urgency: int
    shares: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What was asked for: diagnoses, one an engine rank (or several instants), and what to know beside them."""

    diagnoses: tuple[Diagnosis, ...]
    notes: tuple[str, ...] = ()
    timeline: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """One way to render a report. A new one needs one file, diagnoser/outputs/<name>.py with OUTPUT = Output(...)."""

    name: str
    media_type: str
    render: Callable[[Report, Look], str]
    instants: bool = False
    """It shows every instant of a recording rather than the worst; rendered one instant at a time if `streams`."""
    streams: bool = False


# ---------------------------------------------------------------- the worst first

_EXIT_CODES = (0, 3, 1, 3, 2)
"""By urgency: no bottleneck, unknown, warning, unreachable, critical."""


def urgency(diagnosis: Diagnosis) -> int:
    """0 no bottleneck < 1 unknown < 2 warning < 3 unreachable < 4 critical.

    Unreachable ranks below critical, so that a dead target never hides a known bottleneck; unknown below warning,
    since a named bottleneck can be acted on.
    """
    verdict = diagnosis.verdict
    if verdict.bottleneck == "unreachable":
        return 3
    if verdict.bottleneck == "unknown":
        return 1
    if verdict.bottleneck == "none":
        return 0
    return {"critical": 4, "warning": 2}.get(verdict.severity, 0)


def exit_code(urgencies: Iterable[int]) -> int:
    """Of the worst: 0 no bottleneck, 1 warning, 2 critical, 3 unknown or unreachable, also if there is nothing."""
    return _EXIT_CODES[max(urgencies, default=1)]


def badness(diagnosis: Diagnosis) -> tuple[int, float]:
    """Sorts diagnoses: urgency, then the share of the window that some gate was closed."""
    closed = sum(share for gate, share in diagnosis.verdict.shares.items() if gate != "none")
    return urgency(diagnosis), closed


def worst_first(diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
    """The worst first, equals in their order."""
    return sorted(diagnoses, key=badness, reverse=True)


def moment(diagnosis: Diagnosis) -> Moment:
    """What a timeline keeps of a diagnosis."""
    engine, verdict = diagnosis.engine, diagnosis.verdict
    return Moment(
        diagnosis.at,
        engine.target,
        engine.rank,
        verdict.bottleneck,
        verdict.headline,
        urgency(diagnosis),
        verdict.shares,
    )
