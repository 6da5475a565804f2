"""All engines of a metrics server, and their signals as columns: what a few dozen queries gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diagnoser.errors import ServerError
from diagnoser.promql.dialect import FamilyDialect
from diagnoser.promql.names import Family
from diagnoser.promql.plan import MAX_TEXT, STANDS, Question
from diagnoser.sources.prometheus.api import Answer, Series, Server, together

FAILED = ("failed_scrapes", "failed_scrapes_at_end")
Key = tuple[str, ...]
"""The label values of a rank, in the order of its labels."""


@dataclass(frozen=True, slots=True)
class Rank:
    """One engine rank as the server labels it."""

    family: str
    target: str
    rank: str
    model: str | None
    labels: Mapping[str, str]


@dataclass(slots=True)
class Fleet:
    """Ranks, and a column a signal with an entry a rank. `steps` holds interval signals: {rank: {time: value}}."""

    ranks: list[Rank] = field(default_factory=list)
    columns: dict[str, list[float | None]] = field(default_factory=dict)
    steps: dict[str, dict[int, dict[float, float]]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    """Signals that the server refused to compute, and its words."""

    def suspects(self) -> list[int]:
        """The ranks that are not surely fine: somebody waits, or stands still, or the evidence itself is doubtful."""
        return [i for i in range(len(self.ranks)) if not self._fine(i)]

    def _fine(self, i: int) -> bool:
        zero = ("waiting_max_requests", "failed_scrapes_at_end", "fatal_series", "idle_used_seconds")
        known = [self.columns[name][i] for name in zero if name in self.columns]
        present = self.columns.get("queue_metrics_present")
        stands = self.columns[STANDS][i] if STANDS in self.columns else None
        return present is not None and present[i] == 1 and not stands and known[:1] == [0.0] and not any(known[1:])


class Asker:
    """Asks a server and files the answers by rank."""

    def __init__(self, server: Server, at: float, by: Sequence[str]) -> None:
        self._server, self._at, self._by = server, at, tuple(by)
        self._index: dict[Key, int] = {}
        self._lost: dict[int, float] = {}
        """Ranks whose target gave no page in the window, and how many polls of it failed."""
        self._refuses_long = False
        self.fleet = Fleet()

    async def discover(self, dialects: Sequence[FamilyDialect]) -> None:
        """Which ranks there are, by family; how many pages each has is their first column. Raises ServerError."""
        asked = [(d.family, what, text) for d in dialects for what in ("count", "lost") if (text := d.pages(what))]
        answers = await together(self._server.query(text, self._at) for _, _, text in asked)
        self._warn(*answers)
        found = [(f, what, one) for (f, what, _), a in zip(asked, answers, strict=True) for one in a.series]
        targets = _names({self._place(one) for _, _, one in found})
        pages: list[float | None] = []
        for family, what, one in found:
            index, number = len(self.fleet.ranks), one.values[-1][1]
            self._index[self._key(one)] = index
            self.fleet.ranks.append(_rank(family, one, targets[self._place(one)]))
            pages.append(number if what == "count" else 0.0)
            if what == "lost":
                self._lost[index] = number
        self.fleet.columns["scrapes"] = pages

    async def ask(self, questions: Sequence[Question]) -> None:
        """All of them, a bounded number at once. One that the server refuses is missing; the others stand."""
        await together(self._one(question) for question in questions)

    async def _one(self, question: Question) -> None:
        try:
            answers = await self._answers(question)
        except ServerError as error:
            self.fleet.failed[question.signal] = str(error)
            return
        self._warn(*answers)
        if question.series:
            found = self._by_time(answers)
            self.fleet.steps[question.signal] = _spread_back(found, question.back) if question.back else found
            return
        column: list[float | None] = [None] * len(self.fleet.ranks)
        for answer in answers:
            for one in answer.series:
                index = self._index.get(self._key(one))
                value = one.values[-1][1]
                if index is not None and value == value:
                    column[index] = value
        for index, polls in self._lost.items() if question.signal in FAILED else ():
            column[index] = polls
        self.fleet.columns[question.signal] = column

    async def _answers(self, question: Question) -> list[Answer]:
        long = bool(question.instead) and max(map(len, question.texts)) > MAX_TEXT
        if not (long and self._refuses_long):
            try:
                return [await self._server.query(text, self._at) for text in question.texts]
            except ServerError:
                if not long:
                    raise
                self._refuses_long = True
        return [await self._server.query(text, self._at) for text in question.instead]

    def _by_time(self, answers: Sequence[Answer]) -> dict[int, dict[float, float]]:
        found: dict[int, dict[float, float]] = {}
        for answer in answers:
            for one in answer.series:
                index = self._index.get(self._key(one))
                if index is not None:
                    found[index] = {at: value for at, value in one.values if value == value}
        return found

    def _warn(self, *answers: Answer) -> None:
        self.fleet.warnings = tuple(dict.fromkeys([*self.fleet.warnings, *(w for a in answers for w in a.warnings)]))

    def _key(self, one: Series) -> Key:
        labels = one.labels
        rank = labels.get("engine") or labels.get("dp_rank") or ""
        return (*self._place(one), labels.get("model_name", ""), rank)

    def _place(self, one: Series) -> Key:
        labels = one.labels
        return (labels.get("job", ""), labels.get("instance", ""), *(labels.get(label, "") for label in self._by))


def _spread_back(found: dict[int, dict[float, float]], steps: int) -> dict[int, dict[float, float]]:
    """A value that looks back is also that of the steps it looked at, where it is higher than theirs."""
    out: dict[int, dict[float, float]] = {}
    for index, series in found.items():
        times = sorted(series)
        out[index] = {at: max(series[later] for later in times[i : i + steps + 1]) for i, at in enumerate(times)}
    return out


def _rank(family: Family, one: Series, target: str) -> Rank:
    rank = one.labels.get(family.served.rank_label) or "0"
    return Rank(family.name, target, rank, one.labels.get("model_name"), one.labels)


def _names(places: set[Key]) -> dict[Key, str]:
    """The instance, and the job and more where that is not unique."""
    seen: dict[str, int] = {}
    for place in places:
        seen[place[1]] = seen.get(place[1], 0) + 1
    return {p: p[1] if seen[p[1]] == 1 and p[1] else f"{p[1]} {{{','.join((p[0], *p[2:]))}}}".strip() for p in places}
