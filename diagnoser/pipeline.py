"""The only wiring: scrapes -> snapshots -> windows -> signals -> gates -> checks -> verdict."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

from diagnoser import gates, l2
from diagnoser.checks import answer_all
from diagnoser.engines import adapters
from diagnoser.errors import RuleError
from diagnoser.l2pages import L2Page, joined
from diagnoser.model import CheckResult, Diagnosis, EngineId, Fact, Scrape, Snapshot, Window
from diagnoser.rulebook.lint import problems
from diagnoser.rulebook.rules import Rulebook
from diagnoser.signals import fleet
from diagnoser.signals.base import intervals, signals
from diagnoser.signals.state import pool_at_end
from diagnoser.signals.table import Row, evaluate
from diagnoser.signals.view import View
from diagnoser.tiers import read_tier, tiers
from diagnoser.ttft import by_cause
from diagnoser.verdict import Case, decide
from diagnoser.whatif import Limits, what_if

UNKNOWN_ENGINE = "unknown"
WORDS = ("target", "mode", "l2_phrase", "l2_sentence", "last_error", "engine")
"""Names that texts of the rule files may use besides signals."""


@cache
def wanted_metrics() -> frozenset[str]:
    """Every metric base name that some adapter or tier reads; the parser skips the rest of a page."""
    return frozenset().union(*(a.metrics for a in adapters()), *(t.metrics for t in tiers()))


def signal_names(book: Rulebook) -> tuple[str, ...]:
    """Every signal a rule may name."""
    return (*(s.name for s in signals()), *gates.names(book), *fleet.NAMES)


def rule_problems(book: Rulebook) -> tuple[RuleError, ...]:
    """Everything wrong with the rules: unreadable files and dangling names."""
    return problems(book, signal_names(book), [s.name for s in intervals()], WORDS)


def snapshots_of(scrape: Scrape, facts: Mapping[str, Fact]) -> tuple[Snapshot, ...]:
    """One page in our vocabulary, one snapshot an engine rank, with what it says of the host tier.

    Empty if no adapter knows it.
    """
    found = tuple(s for adapter in adapters() for s in adapter.snapshots(scrape, facts))
    return tuple(replace(s, l2=read_tier(scrape.samples, s.engine, {**s.facts, **facts})) for s in found)


@dataclass(frozen=True, slots=True)
class Thinning:
    """Pages older than `after` seconds are kept one every `step` seconds."""

    after: float
    step: float


class History:
    """What one target has shown so far, as far back as the longest window needs. Bounded by `keep_seconds`."""

    def __init__(
        self,
        target: str,
        keep_seconds: float,
        facts: Mapping[str, Fact] | None = None,
        thinning: Thinning | None = None,
    ) -> None:
        self.target = target
        self.keep_seconds = keep_seconds
        self.thinning = thinning
        self.facts: dict[str, Fact] = dict(facts or {})
        self.l2_pages: tuple[L2Page, ...] = ()
        """Pages of its host tiers at other addresses. Whoever polls them adds to them."""
        self._ranks: dict[str, deque[Snapshot]] = defaultdict(deque)
        self._older: dict[str, deque[Snapshot]] = defaultdict(deque)
        """Pages that were thinned out, where the history is."""
        self._failures: deque[tuple[float, str]] = deque()

    def add(self, scrape: Scrape) -> None:
        """Keeps one poll: its snapshots, or its failure."""
        found = () if scrape.error else snapshots_of(scrape, self.facts)
        for snapshot in found:
            self._ranks[snapshot.engine.rank].append(snapshot)
        if not found:
            self._failures.append((scrape.at, scrape.error or _no_engine(scrape)))
        self._forget(scrape.at - self.keep_seconds)

    def _forget(self, before: float) -> None:
        """Drops old pages, and ranks that are gone although others answer. A dead target keeps who it was."""
        recent = before if self.thinning is None else before + self.keep_seconds - self.thinning.after
        for rank, kept in self._ranks.items():
            while len(kept) > 2 and kept[1].at < recent:
                self._thin_out(rank, kept.popleft(), before)
        gone = [rank for rank, kept in self._ranks.items() if kept[-1].at < before]
        if len(gone) < len(self._ranks):
            for rank in gone:
                del self._ranks[rank]
                self._older.pop(rank, None)
        while self._failures and self._failures[0][0] < before:
            self._failures.popleft()

    def _thin_out(self, rank: str, page: Snapshot, before: float) -> None:
        if self.thinning is None:
            return
        older = self._older[rank]
        if not older or page.at >= older[-1].at + self.thinning.step:
            older.append(page)
        while older and older[0].at < before:
            older.popleft()

    def windows(self, end: float, seconds: float) -> tuple[Window, ...]:
        """One window a rank, ending at `end`. A target that never answered gives one window of failures."""
        slack = 0.02
        failures = tuple(f for f in self._failures if end - seconds - slack <= f[0] <= end + slack)
        ranks = self._ranks or {"": deque()}
        return tuple(
            self._window(rank, kept, failures, end, seconds, slack)
            for rank, kept in sorted(ranks.items(), key=_rank_order)
        )

    def _window(
        self,
        rank: str,
        kept: Sequence[Snapshot],
        failures: tuple[tuple[float, str], ...],
        end: float,
        seconds: float,
        slack: float,
    ) -> Window:
        older = self._older.get(rank, ()) if self.thinning and kept and kept[0].at > end - seconds else ()
        inside = tuple(
            joined(s, self.l2_pages, self.facts)
            for s in chain(older, kept)
            if end - seconds - slack <= s.at <= end + slack
        )
        newest = kept[-1] if kept else None
        engine = newest.engine if newest else EngineId(UNKNOWN_ENGINE, self.target, rank or "0")
        known = {**traits(engine.family), **{name: fact for s in inside[-1:] for name, fact in s.facts.items()}}
        return Window(engine, end, seconds, inside, failures, {**known, **self.facts})


@cache
def traits(family: str) -> Mapping[str, Fact]:
    """How the family's gauges behave, as facts."""
    found = next((a for a in adapters() if a.family == family), None)
    return {n: Fact(n, v, f"how {found.title} works") for n, v in found.traits.items()} if found else {}


def _rank_order(item: tuple[str, object]) -> tuple[int, str]:
    return (int(item[0]) if item[0].isdigit() else 0, item[0])


def _no_engine(scrape: Scrape) -> str:
    return (
        f"{scrape.target.name} answers, but with no metric of a known engine"
        f" ({scrape.series_total} series, {scrape.bad_lines} unreadable lines)."
    )


def diagnose(windows: Sequence[Window], book: Rulebook) -> tuple[Diagnosis, ...]:
    """One diagnosis a window. All windows are evaluated together, so that ranks and replicas can be compared."""
    views = [View(window) for window in windows]
    params = book.params()
    rows: list[Row] = [evaluate(view, params) for view in views]
    rows = [{**row, **added} for row, added in zip(rows, gates.attribute(views, rows, book), strict=True)]
    peers = fleet.compare([w.engine for w in windows], [w.end for w in windows], rows)
    rows = [{**row, **added} for row, added in zip(rows, peers, strict=True)]
    words = [_words(window) for window in windows]
    answered = answer_all(rows, words, book)
    return tuple(
        _diagnosis(view, row, checks, word, book)
        for view, row, checks, word in zip(views, rows, answered, words, strict=True)
    )


def _words(window: Window) -> dict[str, str]:
    last_error = window.failures[-1][1] if window.failures else ""
    return {
        "target": window.engine.target,
        "last_error": last_error,
        "engine": window.engine.family,
        "mode": "",
    }


def _diagnosis(
    view: View,
    row: Row,
    checks: tuple[CheckResult, ...],
    words: dict[str, str],
    book: Rulebook,
) -> Diagnosis:
    window = view.window
    tier = next((s.l2 for s in reversed(window.snapshots) if s.l2 is not None), None)
    found = l2.settle(checks, row, tier, book)
    words = {**words, "l2_phrase": found.phrase, "l2_sentence": found.reason}
    case = Case(row, checks, words, window.engine.family, window.facts, found.state)
    verdict, findings, remedies, not_remedies = decide(case, book)
    diagnosis = Diagnosis(
        engine=window.engine,
        at=window.end,
        window_seconds=window.seconds,
        scrapes=len(window.snapshots),
        verdict=replace(verdict, l2_reason=found.reason, l2_missing=found.missing),
        l1=pool_at_end(view, book.params()),
        l2=tier,
        signals=row,
        checks=case.checks,
        findings=findings,
        remedies=remedies,
        not_remedies=not_remedies,
        facts=window.facts,
        more_l2=found.more,
        ttft=by_cause(row, case.checks) if window.snapshots else None,
    )
    bound = verdict.bottleneck != "none"
    return replace(diagnosis, what_if=what_if(diagnosis, limits_of(book))) if bound else diagnosis


def limits_of(book: Rulebook) -> Limits:
    """The thresholds of the what-if."""
    return Limits.of(book.number)
