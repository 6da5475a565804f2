"""Spells readings of one engine family in PromQL: old and new names, both spellings, ranks, copies, restarts.

Every text is a vector with the labels `place` + model_name + the family's rank label, one element an engine rank.
Gauges are joined by max over their copies (processes, tensor-parallel ranks), as the adapters do; counters are never
summed over ranks that repeat one number. What a name meant in other releases is kept apart by a guard: a metric that
proves the release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from diagnoser.engines.base import HISTOGRAMS, Alias
from diagnoser.engines.versions import Feature, parse
from diagnoser.promql.names import PLACE, Family
from diagnoser.promql.text import duration, name_matcher, quoted
from diagnoser.signals.base import Params, scalar
from diagnoser.signals.promql import Ask

UP = "up"
AT_THE_EDGE = "1e-18"
"""A quantile so small that interpolation adds nothing to the lower edge of the bucket."""
LOST_AFTER = 3600.0
"""An engine that gave its last page longer ago is forgotten, seconds. As for the direct path (docs/prometheus.md)."""
FAILURES_SEEN = 3
"""Polls in a row that `failed_at_end` can tell: as many as `unreachable` needs."""


@dataclass(frozen=True, slots=True)
class Span:
    """The window and the time between two pages, seconds."""

    window: float
    step: float


@dataclass(frozen=True)
class FamilyDialect:
    """`Dialect` of signals/promql.py for one family. `where` is the place of evaluation: the window's end, the steps of
    a subquery, or the window's end seen from inside one.
    """

    family: Family
    span: Span
    params: Params
    signals: Mapping[str, Ask]
    match: str = ""
    by: tuple[str, ...] = ()
    recorded: Callable[[str], str | None] = lambda name: None
    """The name of the recording rule that holds a signal, None where there is none."""
    where: Literal["end", "step", "fixed"] = "end"
    facts: Mapping[str, float] = field(default_factory=dict)
    now: float | None = None
    """The time of the query. VictoriaMetrics 1.79 puts `end()` inside a subquery a step too late."""

    # ---------------------------------------------------------------- labels

    @property
    def place(self) -> str:
        """The labels of a target."""
        return ", ".join((*PLACE, *self.by))

    @property
    def labels(self) -> str:
        """The labels of an engine rank."""
        return f"{self.place}, model_name, {self.family.served.rank_label}"

    def inside(self) -> FamilyDialect:
        """At the steps of a subquery."""
        return self if self.where == "step" else replace(self, where="step")

    def outside(self) -> FamilyDialect:
        """At the end of the whole window."""
        return replace(self, where="fixed") if self.where == "step" else self

    @property
    def at(self) -> str:
        """What fixes a selector to the end of the query."""
        if self.where != "fixed":
            return ""
        return " @ end()" if self.now is None else f" @ {self.now:.3f}"

    def over_window(self) -> str:
        """The range of the window."""
        return f"[{duration(self.span.window)}]{self.at}"

    def recent(self) -> str:
        """The range that holds the newest page."""
        return f"[{duration(2 * self.span.step)}]" if self.where == "step" else self.over_window()

    # ---------------------------------------------------------------- series

    def selector(self, metric: str, where: Mapping[str, str | tuple[str, ...]] | None = None) -> str:
        """{...} of one metric in both spellings."""
        found = [name_matcher((metric,))]
        for label, value in {**self.family.served.matchers, **(where or {})}.items():
            found.append(
                f"{label}={quoted(value)}" if isinstance(value, str) else f"{label}=~{quoted('|'.join(value))}"
            )
        return "{" + ",".join([*found, *([self.match] if self.match else [])]) + "}"

    def server_selector(self, metric: str, where: Mapping[str, str | tuple[str, ...]] | None = None) -> str:
        """The same without what only series of a rank carry."""
        return replace(self, family=replace(self.family, served=replace(self.family.served, matchers={}))).selector(
            metric, where
        )

    def _each(self, name: str, shape: Callable[[str], str], suffix: str = "") -> str | None:
        """The aliases of a reading, best first, each shaped and joined to one element a rank."""
        found = [
            text
            for alias in self.family.readings.get(name, ())
            if (text := self._alias(alias, shape, suffix)) is not None
        ]
        born = self.family.served.unborn.get(name)
        if found and born is not None and (proof := self._proof(parse(born))) is not None:
            found.append(f"({self.constant(0)} and on ({self.place}) {proof})")
        return None if not found else found[0] if len(found) == 1 else "(" + " or ".join(found) + ")"

    def _alias(self, alias: Alias, shape: Callable[[str], str], suffix: str) -> str | None:
        text = self._joined_series(alias, shape, suffix)
        if text is None:
            return None
        if alias.scope == "server":
            text = self._to_ranks(text)
        if alias.scale != 1.0:
            text = f"({text} * {alias.scale:g})"
        return self._guarded(alias, text)

    def _joined_series(self, alias: Alias, shape: Callable[[str], str], suffix: str, keep: str = "") -> str | None:
        """One element a rank, or a server for what only that counts; and a value of the label `keep`."""
        if alias.unit or alias.scope not in ("rank", "server"):
            return None
        metric = alias.metric + suffix
        if alias.scope == "rank":
            return self._joined(alias, shape(self.selector(metric, alias.where)), keep)
        take = "sum" if alias.take == "sum" else "max"
        return f"{take} by ({self.place}{keep}) ({shape(self.server_selector(metric, alias.where))})"

    def _joined(self, alias: Alias, series: str, keep: str) -> str:
        if alias.take != "sum" or not self.family.served.copies:
            return f"{'sum' if alias.take == 'sum' else 'max'} by ({self.labels}{keep}) ({series})"
        return f"sum by ({self.labels}{keep}) (max without ({', '.join(self.family.served.copies)}) ({series}))"

    def _to_ranks(self, per_server: str) -> str:
        """Every rank of a server shows what the server counts as a whole."""
        return f"({self.constant(0)} + on ({self.place}) group_left () {per_server})"

    def _guarded(self, alias: Alias, text: str) -> str | None:
        """Only where the release is known to mean this."""
        if alias.holds == "present":
            return text
        if alias.until:
            newer = self._proof(_next(alias.until))
            text = f"({text} unless on ({self.place}) {newer})" if newer else text
        if alias.holds == "proven" and alias.since:
            proof = self._proof(parse(alias.since))
            return None if proof is None else f"({text} and on ({self.place}) {proof})"
        return text

    def _proof(self, release: tuple[int, ...]) -> str | None:
        """A series that only releases from this one on have."""
        for feature in self.family.served.features:
            if parse(feature.low) >= release and not feature.gone:
                return _feature(feature, self)
        return None

    # ---------------------------------------------------------------- the dialect

    def gauge(self, name: str) -> str | None:
        """A reading now."""
        return self._each(name, lambda series: f"last_over_time({series}{self.recent()})")

    def over(self, how: str, name: str) -> str | None:
        """Over the pages of the window."""
        at_end = self.outside()
        return at_end._each(name, lambda series: f"{how}_over_time({series}{at_end.over_window()})")

    def grew(self, name: str) -> str | None:
        """Over the window; a restart counts from zero again."""
        at_end = self.outside()
        return at_end._each(name, lambda series: f"increase({series}{at_end.over_window()})")

    def stepped(self, name: str) -> str | None:
        """Since the page before; nothing in the step of a restart."""
        name, suffix = _histogram_part(name)
        shift = f" offset {duration(self.span.step)}"
        now = self._each(name, lambda series: f"last_over_time({series}{self.recent()})", suffix)
        before = self._each(name, lambda series: f"last_over_time({series}{self.recent()}{shift})", suffix)
        return None if now is None or before is None else f"(({now} - {before}) >= 0)"

    def total(self, names: Sequence[str], ago: float = 0.0) -> str | None:
        """One selector for all that are told a rank; what only the server counts is added to each rank."""
        shift = f" offset {duration(ago)}" if ago else ""
        own, shared = self._metrics(names, "rank"), self._metrics(names, "server")
        rank = self._sum_of(own, self.labels, f"{self.recent()}{shift}") if own else None
        server = self._sum_of(shared, self.place, f"{self.recent()}{shift}", own_only=False) if shared else None
        if server is None:
            return rank
        spread = self._to_ranks(server)
        return spread if rank is None else f"({rank} + ({spread} or {self.constant(0)}))"

    def _metrics(self, names: Sequence[str], scope: str) -> list[str]:
        counted = self.family.served.histograms
        return [
            alias.metric + ("_count" if name in counted else "")
            for name in names
            for alias in self.family.readings.get(name, ())
            if alias.scope == scope and not alias.unit
        ]

    def _sum_of(self, metrics: Sequence[str], labels: str, window: str, *, own_only: bool = True) -> str:
        """last_over_time keeps the name, so several metrics may share labels; copies of one are joined by max."""
        parts = [name_matcher(tuple(dict.fromkeys(metrics)))]
        if own_only:
            parts += [f"{label}={quoted(value)}" for label, value in self.family.served.matchers.items()]
        inner = ",".join([*parts, *([self.match] if self.match else [])])
        copies = self.family.served.copies
        series = f"last_over_time({{{inner}}}{window})"
        if copies and own_only:
            series = f"max by ({', '.join((labels, '__name__', *self.family.served.parts))}) ({series})"
        return f"sum by ({labels}) ({series})"

    def only(self, names: Sequence[str]) -> str | None:
        """The one plain gauge among them."""
        found = [name for name in names if self.family.readings.get(name)]
        return found[0] if len(found) == 1 else None

    def lately(self, function: str, name: str, seconds: float) -> str | None:
        """Over pages that are at least `seconds` apart."""
        here = self.outside()
        pages = -(-seconds // self.span.step) + 1
        window = f"[{duration(pages * self.span.step)}]{here.at}" if seconds else here.over_window()
        return here._each(name, lambda series: f"{function}({series}{window})")

    def recently(self, name: str, seconds: float) -> str | None:
        """Before the place of evaluation."""
        bare = replace(self, family=replace(self.family, served=replace(self.family.served, unborn={})))
        return bare._each(name, lambda series: f"increase({series}[{duration(seconds)}]{self.at})")

    def ranks(self) -> str:
        """Ranks of the target: those that are seen, or as many as the lowest number tells in old releases, where only
        the last rank of a process is on its page.
        """
        here, served = self.outside(), self.family.served
        seen = f"count by ({self.place}) ({here.anchors()})"
        proof = here._proof(parse(served.all_ranks_from)) if served.all_ranks_from else None
        if proof is None:
            return self._to_ranks(seen)
        bucket = f'label_replace({here.anchors()}, "le", "$1", "{served.rank_label}", "([0-9]+)")'
        both = f'{bucket} or label_replace({seen}, "le", "+Inf", "", "")'
        number = f"histogram_quantile(1, max by ({self.place}, le) ({both}))"
        return self._to_ranks(f"((({number} + 1 > {seen}) unless on ({self.place}) {proof}) or {seen})")

    def observed(self, name: str, part: str, *, ever: bool = False, before: bool = False) -> str | None:
        """Growth of a histogram."""
        at_end = self.outside()
        return at_end._each(name, at_end._first_page if before else at_end._growth(ever), f"_{part}")

    def _first_page(self, series: str) -> str:
        """What a series was on the first page of the window."""
        first = duration(self.span.window - self.span.step)
        return f"last_over_time({series}[{duration(2 * self.span.step)}]{self.at} offset {first})"

    def _growth(self, ever: bool) -> Callable[[str], str]:
        how = "last_over_time" if ever else "increase"
        return lambda series: f"{how}({series}{self.over_window()})"

    def edge(self, name: str, q: float, side: str, *, ever: bool = False) -> str | None:
        """The bucket's edge, by a histogram of one observation that lies in it (quantiles interpolate inside it)."""
        here = self.outside()
        found = [
            text
            for alias in self.family.readings.get(name, ())
            if (text := here._edge_of(alias, q, side, here._growth(ever))) is not None
        ]
        return None if not found else found[0] if len(found) == 1 else "(" + " or ".join(found) + ")"

    def _edge_of(self, alias: Alias, q: float, side: str, shape: Callable[[str], str]) -> str | None:
        buckets = self._joined_series(alias, shape, "_bucket", ", le")
        count = self._joined_series(alias, shape, "_count")
        if buckets is None or count is None:
            return None
        labels = self.place if alias.scope == "server" else self.labels
        step = f"({buckets} >= bool on ({labels}) group_left () ({q:g} * ({count} > 0)))"
        if side == "low":
            edge = f"histogram_quantile({AT_THE_EDGE}, {step})"
        else:
            last = f"(count by ({labels}) ({step} == 1) == 1)"
            edge = f"((histogram_quantile(1, {step}) unless {last}) or {last} * Inf)"
        return self._guarded(alias, self._to_ranks(edge) if alias.scope == "server" else edge)

    def label(self, name: str) -> str | None:
        """A number in a label, by a histogram whose only bucket ends there: `le` is the one label PromQL reads as a
        number. Of two configurations in one window (a restart) it is the larger.
        """
        info = self.family.served.info
        if not info:
            return None
        series = f"max by ({self.place}, {name}) (last_over_time({self.server_selector(info)}{self.over_window()}))"
        bucket = f'label_replace({series}, "le", "$1", "{name}", "([0-9.]+)")'
        last = f'label_replace({series}, "le", "+Inf", "", "")'
        return self._to_ranks(f"max by ({self.place}) (histogram_quantile(1, {bucket} or {last}) >= 0)")

    def labelled(self, name: str, value: str) -> str | None:
        """1 where the configuration says so."""
        info = self.family.served.info
        if not info:
            return None
        series = self.server_selector(info, {name: value})
        return self._to_ranks(f"max by ({self.place}) (last_over_time({series}{self.over_window()}) * 0 + 1)")

    def trait(self, name: str) -> float | None:
        """As a number."""
        value = self.family.traits.get(name)
        return value if isinstance(value, float | int) else None

    def fact(self, name: str) -> float | None:
        """What the user told."""
        return self.facts.get(name)

    def param(self, name: str) -> float:
        """A threshold."""
        return scalar(self.params, name)

    def constant(self, value: float) -> str:
        """One element a rank that was there in the window."""
        zero = self.outside().anchors()
        return f"{zero} * 0" if value == 0 else f"({zero} * 0 + {value:g})"

    def anchors(self) -> str:
        """One element a rank that was there in the window."""
        names = name_matcher(self.family.served.anchors)
        inner = ",".join([names, *([self.match] if self.match else [])])
        return f"count by ({self.labels}) (last_over_time({{{inner}}}{self.over_window()}))"

    def signal(self, name: str) -> str | None:
        """By its recording rule, else spelled out."""
        record = self.recorded(name)
        if record is not None:
            return record
        return self.signals[name].text(self) if name in self.signals else None

    def subquery(self, how: str, text: str, seconds: float = 0.0, ago: float = 0.0) -> str:
        """Over the steps of the window, or of a part of it."""
        steps = f"[{duration(seconds or self.span.window)}:{duration(self.span.step)}]"
        shift = f" offset {duration(ago)}" if ago else ""
        return f"{how}_over_time(({text}){steps}{self.at}{shift})"

    @property
    def window_seconds(self) -> float:
        """Length of the window."""
        return self.span.window

    @property
    def step_seconds(self) -> float:
        """Time between two pages."""
        return self.span.step

    def pages(self, what: str) -> str | None:
        """Of the page as such."""
        if what == "count":
            return self._count()
        if what == "lost":
            return self._lost()
        if what == "age":
            newest = " or ".join(
                f"max by ({self.labels}) (timestamp({self.server_selector(name)}{self.at}))"
                for name in self.family.served.anchors
            )
            return f"(time() - ({newest}))"
        polls = {"failed": self._failed(), "failed_at_end": self._failed_at_end()}[what]
        return self._to_ranks(polls)

    def _count(self) -> str:
        """Of the anchor that was on most pages: some are born with the first request."""
        here = self.outside()
        counted = [
            f"count_over_time({here.server_selector(name)}{here.over_window()})" for name in self.family.served.anchors
        ]
        apart = [f'label_replace({text}, "anchor", "{i}", "", "")' for i, text in enumerate(counted)]
        return f"max by ({self.labels}) ({' or '.join(apart) if len(apart) > 1 else counted[0]})"

    def _lost(self) -> str:
        """Polls in the window of ranks that were there within the hour, if none of those polls gave a page."""
        inner = ",".join([name_matcher(self.family.served.anchors), *([self.match] if self.match else [])])
        seen = f"count by ({self.labels}) (last_over_time({{{inner}}}[{duration(LOST_AFTER)}]))"
        up = f"{UP}{self.over_window()}"
        silent = f"max by ({self.place}) (count_over_time({up}) unless sum_over_time({up}) > 0)"
        return f"(({seen} unless {self.anchors()}) * 0 + on ({self.place}) group_left () {silent})"

    def _failed(self) -> str:
        up = f"{UP}{self.over_window()}"
        return f"max by ({self.place}) (count_over_time({up}) - sum_over_time({up}))"

    def _failed_at_end(self) -> str:
        """The newest n polls lie in n steps, whenever the last one was; a little more, for jitter."""
        here = self.outside()
        polls = [(n, f"{UP}[{duration((n + 0.02) * self.span.step)}]{here.at}") for n in range(1, FAILURES_SEEN + 1)]
        none = f"(count_over_time({UP}{here.over_window()}) * 0)"
        silent = (
            f"((max_over_time({up}) == bool 0) * (count_over_time({up}) >= bool {n}) or {none})" for n, up in polls
        )
        return f"max by ({self.place}) ({' + '.join(silent)})"


def _feature(feature: Feature, dialect: FamilyDialect) -> str:
    where: Mapping[str, str | tuple[str, ...]] = {}
    text = dialect.server_selector(feature.metric, where)
    if feature.label:
        text = text.removesuffix("}") + f',{feature.label}!=""}}'
    return f"last_over_time({text}{dialect.outside().over_window()})"


def _histogram_part(name: str) -> tuple[str, str]:
    """iteration_tokens_sum -> the histogram and the suffix of its series."""
    for suffix in ("_sum", "_count"):
        if name.removesuffix(suffix) in HISTOGRAMS and name.endswith(suffix):
            return name.removesuffix(suffix), suffix
    return name, ""


def _next(release: str) -> tuple[int, ...]:
    found = parse(release)
    return (*found[:-1], found[-1] + 1)


def rendered(name: str, dialects: Sequence[FamilyDialect]) -> dict[str, str]:
    """A signal's PromQL by family; families that cannot say it are left out."""
    texts = {d.family.name: d.signal(name) for d in dialects}
    return {family: text for family, text in texts.items() if text is not None}
