"""What a metrics server is asked: one query a signal, for all engines of all families at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from diagnoser.gates import UPPER
from diagnoser.promql.dialect import FamilyDialect
from diagnoser.promql.sets import Words, sets
from diagnoser.promql.text import duration
from diagnoser.rulebook.conditions import Compare, Condition, leaves
from diagnoser.rulebook.rules import Check, Gate, Rulebook
from diagnoser.signals.base import intervals, signals

MAX_TEXT = 15_500
"""VictoriaMetrics refuses queries of more than 16 KiB (-search.maxQueryLen)."""
STANDS = "standing"
"""Name of the question for which part of the window an engine stood still, whether somebody waits or not."""
SHOWN = (
    "waiting_last_requests",
    "waiting_max_requests",
    "running_mean_requests",
    "l1_used_ratio_mean",
    "l1_used_ratio_last",
    "l1_capacity_tokens",
    "ttft_p99_low_seconds",
    "ttft_p99_high_seconds",
)
"""What a table shows beside the verdict."""


FIRST = (
    "waiting_max_requests",
    "waiting_last_requests",
    "running_mean_requests",
    "running_or_waiting_max_requests",
    "l1_used_ratio_mean",
    "l1_used_ratio_last",
    "l1_capacity_tokens",
    "failed_scrapes_at_end",
    "fatal_series",
    "queue_metrics_present",
    "idle_used_seconds",
)
"""What is asked of every engine. It tells who is surely fine; only of the others everything else is asked."""
LOOKS = 5
"""How often a window is looked at for an engine that stands still though nobody waits."""


@dataclass(frozen=True, slots=True)
class Question:
    """One signal: a query, or one a family where they are too long together. `series` asks for every step; a value is
    then about so many steps before its own as well (`back`).
    """

    signal: str
    texts: tuple[str, ...]
    series: bool = False
    back: int = 0
    instead: tuple[str, ...] = ()
    """The same of all engines, for a server that refuses a query for its length."""


def window_questions(names: Iterable[str], dialects: Sequence[FamilyDialect]) -> list[Question]:
    """One question a window signal; none where PromQL cannot say it."""
    found = ((name, _texts([d.signal(name) for d in dialects])) for name in names)
    return [Question(name, texts) for name, texts in found if texts]


def interval_questions(dialects: Sequence[FamilyDialect]) -> list[Question]:
    """One question an interval signal, at every step."""
    return [
        Question(signal.name, texts, series=True, back=max(signal.promql.looks_back(d) for d in dialects))
        for signal in intervals()
        if (texts := _texts([_steps(signal.promql.text(d.inside()), d) for d in dialects]))
    ]


def standing_question(book: Rulebook, dialects: Sequence[FamilyDialect]) -> Question:
    """Which part of the window a gate that needs no queue was closed."""
    whole = [gate for gate in book.gates if gate.whole and gate.when is not None]
    return Question(STANDS, _texts([_share(gate, d) for gate in whole for d in dialects]))


def _steps(text: str | None, dialect: FamilyDialect) -> str | None:
    if text is None:
        return None
    return f"({text})[{duration(dialect.window_seconds)}:{duration(dialect.step_seconds)}]"


def _share(gate: Gate, dialect: FamilyDialect) -> str | None:
    """A few looks tell of long standstills; how long they were is then asked step by step."""
    assert gate.when is not None
    held = sets(gate.when, step_words(dialect)).true
    if held is None:
        return None
    every = max(dialect.step_seconds, dialect.window_seconds / LOOKS)
    seen = f"count_over_time(({held})[{duration(dialect.window_seconds)}:{duration(every)}])"
    return f"clamp_max({seen} * {every / dialect.window_seconds:.4g}, 1)"


def step_words(dialect: FamilyDialect) -> Words:
    """Signals as they are spelled at the steps of a window."""
    own = {signal.name: signal.promql for signal in intervals()}
    inside = dialect.inside()

    def spelled(name: str) -> str | None:
        return own[name].text(inside) if name in own else inside.outside().signal(name)

    return Words(spelled, lambda check, answer: "", inside.constant(1))


def _texts(found: Sequence[str | None]) -> tuple[str, ...]:
    """Together where they are short enough and plain vectors, else apart."""
    texts = [text for text in found if text is not None]
    together = " or ".join(texts)
    if len(texts) > 1 and len(together) <= MAX_TEXT and not texts[0].endswith("]"):
        return (together,)
    return tuple(texts)


# ---------------------------------------------------------------- what a verdict needs


def decisive(book: Rulebook) -> tuple[str, ...]:
    """The window signals that the verdict, its confidence and the state of L2 rest on, and what a table shows."""
    checks = [check for check in book.checks if check.id in _deciding(book) or check.settles]
    conditions = [c for check in checks for c in (check.yes, check.no) if c is not None]
    conditions += [gate.when for gate in book.gates if gate.when is not None]
    named = {leaf.signal for c in conditions for leaf in leaves(c) if isinstance(leaf, Compare)}
    return tuple(s.name for s in signals() if s.name in {*named, *SHOWN, UPPER})


def _deciding(book: Rulebook) -> set[str]:
    found: set[str] = set()
    for rule in book.verdicts:
        conditions: list[Condition | None] = [rule.when, rule.suspected, *(when for _, when in rule.severity)]
        named = (leaf for c in conditions if c is not None for leaf in leaves(c))
        found |= {leaf.check for leaf in named if not isinstance(leaf, Compare)}
        found |= {*rule.direct, *rule.exclude}
    return found


def deciding_checks(book: Rulebook) -> tuple[Check, ...]:
    """The checks that a verdict rests on, and those that tell the state of L2."""
    return tuple(check for check in book.checks if check.id in _deciding(book) or check.settles)
