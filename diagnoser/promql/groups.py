"""Every recording rule in groups: each family's signals, gates and verdicts, then all families under common labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diagnoser.promql.dialect import FamilyDialect
from diagnoser.promql.records import PREFIX, STATED, Record, Recorder
from diagnoser.rulebook.rules import Rulebook


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that a server evaluates one after the other, every `interval` seconds."""

    name: str
    interval: float
    rules: tuple[Record, ...]


def groups(dialects: Sequence[FamilyDialect], book: Rulebook) -> tuple[Group, ...]:
    """Every recording rule."""
    recorders = [Recorder(dialect, book) for dialect in dialects]
    step = dialects[0].span.step
    found = []
    for one in recorders:
        found.append(Group(f"diagnoser-{one.family}-signals", step, tuple(one.signals())))
        found.append(Group(f"diagnoser-{one.family}-gates", step, tuple(one.gates())))
        verdicts = (*one.shares(), *one.checks(), *one.verdicts(), *one.l2())
        found.append(Group(f"diagnoser-{one.family}-verdicts", step, verdicts))
    found.append(Group("diagnoser", step, tuple(_together(recorders))))
    return tuple(found)


def _together(recorders: Sequence[Recorder]) -> Iterator[Record]:
    """With the labels job, instance, family, model and rank, whatever the engine calls them."""
    names = [name for name in STATED if any(name in r.able for r in recorders)]
    for what in ("verdict", "share", "check", "l2_state", "blocked_ratio", *names):
        texts = [_common(r, what) for r in recorders if what not in names or what in r.able]
        yield Record(f"{PREFIX}{what}:{recorders[0].window}", " or ".join(texts))


def _common(recorder: Recorder, what: str) -> str:
    rank = recorder.dialect.family.served.rank_label
    model = f'label_replace({recorder.of(what)}, "model", "$1", "model_name", "(.*)")'
    model = f'label_replace({model}, "family", "{recorder.family}", "", "")'
    named = f'label_replace(label_replace({model}, "rank", "0", "", ""), "rank", "$1", "{rank}", "(.+)")'
    return f"max without (model_name, {rank}) ({named})"
