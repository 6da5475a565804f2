"""Recording rules: signals, gates, shares, checks and verdicts, each from the ones before.

Of one family: `rank:vllm_<signal>:5m`, with the engine's own labels. Of all: `rank:diagnoser_<what>:5m` with the labels
job, instance, model and rank. A gate is decided for every interval by itself (`:now`); its share is the mean of that
over the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from diagnoser.gates import UPPER
from diagnoser.promql.dialect import FamilyDialect
from diagnoser.promql.peers import peer_vectors
from diagnoser.promql.plan import SHOWN, decisive
from diagnoser.promql.sets import Sets, Words, sets
from diagnoser.promql.text import duration, ones
from diagnoser.rulebook.conditions import Compare, leaves
from diagnoser.rulebook.rules import Check, Rulebook, VerdictRule
from diagnoser.signals.base import intervals
from diagnoser.signals.promql import Ask, of_signals

PREFIX = "rank:diagnoser_"
"""What every recorded series of all families begins with."""
STATED = (*SHOWN, "l1_used_ratio_max", "running_top_requests", "scrapes", "l2_resident_ratio")
"""Signals that are recorded for all families together, for tables, dashboards and the words of alerts."""


@dataclass(frozen=True, slots=True)
class Record:
    """One recording rule."""

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)


class Recorder:
    """The rules of one family."""

    def __init__(self, dialect: FamilyDialect, book: Rulebook) -> None:
        self.book, self.family = book, dialect.family.name
        self.window = duration_name(dialect.span.window)
        self.names = _closure((*decisive(book), *STATED, *_checked(book)), dialect.signals)
        self._plain = dialect
        able = {name for name in self.names if dialect.signal(name) is not None}
        self.dialect = replace(dialect, recorded=lambda name: self.of(name) if name in able else None)
        self.able = able

    def of(self, what: str) -> str:
        """The recorded series of a signal over the window."""
        return f"rank:{self.family}_{what}:{self.window}"

    def now(self, what: str) -> str:
        """The recorded series of an interval."""
        return f"rank:{self.family}_{what}:now"

    # ---------------------------------------------------------------- signals

    def signals(self) -> Iterator[Record]:
        """Every window signal that PromQL can say, in the order in which they build on each other."""
        for name in self.names:
            if name in self.able:
                own = replace(self.dialect, recorded=self._before(name))
                yield Record(self.of(name), _text(own.signals[name], own))

    def _before(self, name: str):  # type: ignore[no-untyped-def]
        return lambda other: self.of(other) if other in self.able and other != name else None

    # ---------------------------------------------------------------- gates

    def gates(self) -> Iterator[Record]:
        """What an interval shows, which signs hold in it, and which gate has it."""
        inside, own = self.dialect.inside(), {s.name: s.promql for s in intervals()}
        here = {name: text for name, ask in own.items() if (text := ask.text(inside)) is not None}
        yield from (Record(self.now(name), text) for name, text in here.items())
        words = Words(lambda name: self._vector(name, here), _no_answer, self._everyone())
        for gate in self.book.gates:
            if gate.when is not None:
                yield Record(self.now(f"sign_{gate.id}"), _answered(sets(gate.when, words)))
        yield from self._closed()

    def _vector(self, name: str, here: Mapping[str, str]) -> str | None:
        if name in here:
            return self.now(name)
        return self.of(name) if name in self.able else None

    def _everyone(self) -> str:
        return self.of("scrapes")

    def _closed(self) -> Iterator[Record]:
        """The part of the interval that each gate has: the first sign that holds decides."""
        queue, before = self.now("queue_present_ratio"), list[str]()
        parts: dict[str, list[str]] = {gate: [] for gate in self.book.gate_names()}
        for gate in self.book.gates:
            mine = f"({self.now(f'sign_{gate.id}')} == 1)" if gate.when is not None else self._everyone()
            part = ones(mine) if gate.whole else f"(({queue} > 0) and {mine})"
            parts[gate.gate].append(f"({part} unless {_any(before)})" if before else part)
            before.append(mine)
        for name, texts in parts.items():
            zero = f"{self._everyone()} * 0"
            yield Record(self.now("closed"), f"{nameless(' or '.join([*texts, zero]))} and {queue}", {"gate": name})
            yield Record(self.now("excluded"), self._excluded(name), {"gate": name})

    def _excluded(self, gate: str) -> str:
        """The part of the interval in which somebody waited and the gate was surely open."""
        signs = [f"({self.now(f'sign_{g.id}')} == 0)" for g in self.book.gates if g.gate == gate and g.when]
        queue = self.now("queue_present_ratio")
        return nameless(f"({' and '.join([queue, *signs])}) or {queue} * 0")

    # ---------------------------------------------------------------- shares

    def shares(self) -> Iterator[Record]:
        """Shares of the window, and how far each gate leads."""
        queue, range_ = self.now("queue_present_ratio"), f"[{self.window}]"
        trust, whole = self.of("queue_trust_ratio"), {gate.gate for gate in self.book.gates if gate.whole}
        shown = f"(avg_over_time({queue}{range_}) > 0)"
        bound = f"clamp_max({self.of(UPPER)} / {shown}, 1) or " if UPPER in self.able else ""
        yield Record(trust, bound + ones(f"avg_over_time({queue}{range_})"))
        for gate in self.book.gate_names():
            closed = f'avg_over_time({self.now("closed")}{{gate="{gate}"}}{range_})'
            text = closed if gate in whole else f"{closed} * ignoring (gate) {trust}"
            yield Record(self.of("share"), text, {"gate": gate})
        share = self.of("share")
        for gate in self.book.gate_names():
            others = f'max without (gate) ({share}{{gate!="{gate}"}})'
            yield Record(self.of("lead"), f'{share}{{gate="{gate}"}} - ignoring (gate) {others}', {"gate": gate})
            open_ = f'sum_over_time({self.now("excluded")}{{gate="{gate}"}}{range_})'
            waited = f"(sum_over_time({queue}{range_}) > 0)"
            never = ones(f"sum_over_time({queue}{range_}) == 0")
            yield Record(self.of("excluded"), f"{open_} / ignoring (gate) {waited} or {never}", {"gate": gate})
        yield Record(self.of("blocked_ratio"), f"clamp_max(sum without (gate) ({share}), 1)")
        third = duration_name(self._plain.span.window * self.book.number("late_part_ratio"))
        yield Record(self.of("late_blocked_ratio"), f"avg_over_time({queue}[{third}]) * {trust}")
        late, all_ = self.of("late_blocked_ratio"), f"avg_over_time({queue}{range_}) * {trust}"
        part = self.book.number("late_part_ratio")
        yield Record(self.of("blocked_change_ratio"), f"{late} - ({all_} - {part:g} * {late}) / {1 - part:g}")

    # ---------------------------------------------------------------- checks and verdicts

    def checks(self) -> Iterator[Record]:
        """1 yes, 0 no, nothing unknown."""
        peers = peer_vectors(self.of, self.dialect)
        yield from (Record(self.of(name), text) for name, text in peers.items())
        known = {*self.able, *peers, "blocked_ratio", "late_blocked_ratio", "blocked_change_ratio"}

        def vector(name: str) -> str | None:
            for kind in ("share", "lead", "excluded"):
                if name.removeprefix(f"{kind}_") in self.book.gate_names() and name.startswith(f"{kind}_"):
                    return f'max without (gate) ({self.of(kind)}{{gate="{name.removeprefix(f"{kind}_")}"}})'
            return self.of(name) if name in known else None

        words = Words(vector, _no_answer, self._everyone())
        for check in self.book.checks:
            if (text := _check(check, words)) is not None:
                yield Record(self.of("check"), text, {"check": check.id})

    def verdicts(self) -> Iterator[Record]:
        """The first entry of the decision list that holds, with its severity."""
        words = Words(lambda name: None, self._gave, self._everyone())
        before: list[str] = []
        for rule in self.book.verdicts:
            held = sets(rule.when, words).true or self._everyone()
            first = f"({held} unless {_any(before)})" if before else held
            before.append(held)
            yield from self._by_severity(rule, first, words)

    def _by_severity(self, rule: VerdictRule, first: str, words: Words) -> Iterator[Record]:
        done: list[str] = []
        labels = {"bottleneck": rule.bottleneck, "mode": rule.mode or "", "rule": rule.id}
        for severity, when in rule.severity:
            more = None if when is None else sets(when, words).true
            text = first if more is None else f"({first} and {more})"
            text = f"({text} unless {_any(done)})" if done else text
            if more is not None:
                done.append(more)
            yield from self._by_confidence(rule, text, {**labels, "severity": severity}, words)

    def _by_confidence(self, rule: VerdictRule, text: str, labels: Mapping[str, str], words: Words) -> Iterator[Record]:
        """high: direct evidence and every look-alike answered no; low: suspected, or neither of the two."""
        direct = _any([self._gave(check, "yes") for check in rule.direct]) if rule.direct else self._everyone()
        excluded = " and ".join([self._everyone(), *(self._gave(check, "no") for check in rule.exclude)])
        suspected = sets(rule.suspected, words).true if rule.suspected is not None else None
        doubtful = f"({text} and {suspected})" if suspected else None
        text = f"({text} unless {suspected})" if suspected else text
        both, either = f"({direct} and {excluded})", f"({direct} or ({excluded}))"
        texts = {"high": [f"({text} and {both})"], "medium": [], "low": [doubtful] if doubtful else []}
        if rule.direct or rule.exclude:
            texts["medium"].append(f"({text} and {either} unless {both})")
            texts["low"].append(f"({text} unless {either})")
        for confidence, found in texts.items():
            if found:
                yield Record(self.of("verdict"), ones(_any(found)), {**labels, "confidence": confidence})

    def _gave(self, check: str, answer: str) -> str:
        of_check = f'max without (check) ({self.of("check")}{{check="{check}"}})'
        if answer == "unknown":
            return f"({self._everyone()} unless {of_check})"
        return f"({of_check} == {int(answer == 'yes')})"

    def l2(self) -> Iterator[Record]:
        """The state of the host tier: the first check that settles it."""
        before: list[str] = []
        for check in self.book.checks:
            state = check.settles.get("l2")
            if state is not None:
                yes = self._gave(check.id, "yes")
                yield Record(
                    self.of("l2_state"),
                    ones(f"{yes} unless {_any(before)}" if before else yes),
                    {"state": state, "check": check.id},
                )
                before.append(yes)


def duration_name(seconds: float) -> str:
    """A duration as it stands in names and ranges: 5m, 15s."""
    whole = round(seconds)
    return f"{whole // 60}m" if whole >= 60 and whole % 60 == 0 else duration(seconds)


def nameless(text: str) -> str:
    """Without the names of what it is made of: else two series over a range, where `or` changes its side."""
    return f"max without () ({text})"


def _checked(book: Rulebook) -> tuple[str, ...]:
    found = (c for check in book.checks for c in (check.yes, check.no) if c is not None)
    return tuple({leaf.signal: None for c in found for leaf in leaves(c) if isinstance(leaf, Compare)})


def _closure(names: Sequence[str], asks: Mapping[str, Ask]) -> tuple[str, ...]:
    """The signals with those they build on, these first."""
    out: dict[str, None] = {}

    def add(name: str) -> None:
        if name in asks and name not in out:
            for other in of_signals(asks[name]):
                add(other)
            out[name] = None

    for name in dict.fromkeys(names):
        add(name)
    return tuple(out)


def _text(ask: Ask, dialect: FamilyDialect) -> str:
    text = ask.text(dialect)
    assert text is not None
    return text


def _no_answer(check: str, answer: str) -> str:
    raise TypeError(f"a condition over signals cannot ask for check {check}")


def _any(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({' or '.join(texts)})"


def _answered(found: Sets) -> str:
    """1 where it is true, 0 where it is false."""
    yes = ones(found.true) if found.true else None
    no = f"{ones(found.false)} - 1" if found.false else None
    texts = [f"({text})" for text in (yes, no) if text is not None]
    return " or ".join(texts) if texts else "vector(0) unless vector(0)"


def _check(check: Check, words: Words) -> str | None:
    yes = sets(check.yes, words)
    no = yes.false if check.no is None else sets(check.no, words).true
    return None if yes.true is None and no is None else _answered(Sets(yes.true, no))
