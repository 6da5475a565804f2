"""(a) without a Prometheus: the fleet as the service itself tells it, through the Infinity data source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders import dashboard as of
from grafana_foundation_sdk.models.dashboard import AnnotationQuery, Dashboard, VariableRefresh

from boards.frame import ALL, INFINITY, board
from boards.infinity import RANGE, SOURCE, Rows, chosen, options
from boards.panels import (
    Panel,
    bars,
    coloured,
    column,
    finished,
    gauge,
    hidden,
    linked,
    number,
    painted,
    plain,
    rows,
    states,
    transformed,
    wide,
)
from boards.words import COLOURS, DOCS, L2_COLOURS, L2_NAMES, blocked, bottlenecks, l2_states, nothing, texts
from boards.words import URGENCY as _URGENCY
from boards.worst import COLUMNS

URGENCY = {str(value): (text, colour) for value, text, colour in (*_URGENCY, (4, "critical", "red"))}
FLEET = {
    "urgency": "number", "engine": "string", "model": "string", "bottleneck": "string", "mode": "string",
    "severity": "string", "confidence": "string", "waiting": "number", "running": "number", "blocked": "number",
    "used_low_tokens": "number", "used_high_tokens": "number", "capacity_tokens": "number",
    "ttft_p99_low_seconds": "number", "ttft_p99_high_seconds": "number", "l2": "string",
    "remedy": "string", "since": "timestamp_epoch",
}  # fmt: skip


def dashboard() -> Dashboard:
    """The whole."""
    words = (
        "Which gate keeps requests waiting in each engine rank, worst first. From the service's own API; needs no "
        "Prometheus."
    )
    return board(
        INFINITY, words, variables(), [Transitions()], [*_top(), timeline(), worst(), *_counts(), *_imbalance()]
    )


def variables() -> Sequence[Any]:
    """Those that the API filters by; each of those that match the ones before."""
    made: list[Any] = [of.DatasourceVariable("datasource").label("Infinity").type(SOURCE.type_val)]
    before: dict[str, str] = {}
    for name, values in (("model", "models"), ("engine", "engines"), ("bottleneck", "bottlenecks")):
        one = of.QueryVariable(name).label(name).query(options(values, dict(before))).datasource(SOURCE)
        made.append(one.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).multi(True).include_all(True).current(ALL))
        before[name] = f"${{{name}}}"
    return made


class Transitions:
    """Annotations: every change of a verdict."""

    def build(self) -> AnnotationQuery:
        """As the SDK's builders."""
        columns = {"time": "timestamp_epoch", "title": "string", "text": "string", "tags": "string"}
        return _Told(name="Changes of verdict", datasource=SOURCE, enable=True, icon_color="orange",
                     target=Rows("annotations", columns, {**RANGE, **chosen()}, ref="Anno"))  # fmt: skip


class _Told(AnnotationQuery):
    """The SDK knows the fields of Grafana's own annotations only."""

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "target": self.target.to_json()}


def _panel(made: Panel, title: str, words: str, size: tuple[int, int], steps: Any = ((None, "green"),)) -> Panel:
    return finished(made, title, words, size, steps).datasource(SOURCE)


def _top() -> Iterator[Panel]:
    for title, words, more in (
        ("Engine ranks", "Ranks that are watched.", {}),
        ("Critical", "Ranks whose verdict is critical.", {"severity": "critical"}),
        ("L1-bound", "Ranks in which KV space keeps requests waiting.", {"bottleneck": "l1"}),
        ("Not known", "Ranks that do not answer, or whose data do not suffice.", {"bottleneck": "unknown,unreachable"}),
    ):
        made = number([Rows("fleet", {"engine": "string"}, {**chosen(), **more})], "short", empty="0")
        made.reduce_options(common.ReduceDataOptions().calcs(["count"]).fields("/^engine$/"))
        alarm = "red" if title == "Critical" else "orange"
        shown = _panel(made, title, words, (6, 3), ((None, "green"), (1, alarm)))
        yield shown if more else plain(shown)


def timeline() -> Panel:
    """Verdicts over time: a column an engine."""
    asked = {**RANGE, "interval_ms": "${__interval_ms}", "format": "wide", **chosen()}
    made = transformed(states([Rows("timeline", {}, asked)], bottlenecks()), convertFieldType=_TIME)
    words = (
        "The closed gate of every rank over time, from the service's history. Green: requests are admitted as they "
        "come."
    )
    return _panel(made, "Verdict of every engine rank", words, (24, 9))


_TIME = {"conversions": [{"targetField": "time", "destinationType": "time"}], "fields": {}}
NAMES = {
    "ttft_p99_low_seconds": COLUMNS["Value #E"], "ttft_p99_high_seconds": COLUMNS["Value #F"], "l2": "L2",
    "used_low_tokens": "KV held ≥", "used_high_tokens": "KV held ≤", "capacity_tokens": "KV pool",
}  # fmt: skip


def worst() -> Panel:
    """The table."""
    columns = {name: kind for name, kind in FLEET.items() if name != "running"}
    made = rows([Rows("fleet", columns, chosen())], "urgency", "blocked")
    transformed(made, organize={"renameByName": NAMES})
    coloured(made, "urgency", texts(URGENCY))
    coloured(made, "bottleneck", bottlenecks())
    coloured(made, "L2", [*l2_states(), nothing("unknown")])
    gauge(made, "blocked", blocked())
    for name in ("KV held ≥", "KV held ≤", "KV pool"):
        column(made, name, unit="short", custom_width=95)
    wide(made, urgency=90, engine=180, bottleneck=100, mode=110, confidence=105, waiting=80, L2=115, since=145)
    column(made, "remedy", custom_inspect=True)
    column(made, "since", unit="dateTimeFromNow")
    hidden(made, "severity")
    for name in (COLUMNS["Value #E"], COLUMNS["Value #F"]):
        column(made, name, unit="s", custom_width=105)
    linked(made, "bottleneck", "What it means", f"{DOCS}/verdicts.md")
    words = (
        "One line a rank, the most urgent first, with the first remedy. A number with a range has two columns: at "
        "least, at most. KV is in tokens."
    )
    return _panel(made, "Engines, worst first", words, (24, 10))


def _grouped(by: str, **fields: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {by: {"aggregations": [], "operation": "groupby"}}
    return {"fields": {**found, **{n: {"aggregations": a, "operation": "aggregate"} for n, a in fields.items()}}}


def _counts() -> Iterator[Panel]:
    for title, words, by in (
        ("Ranks by bottleneck", "How many ranks have which bottleneck now.", "bottleneck"),
        ("Ranks by L2 state", "States of host tiers. Only idle_space means that L2 is known to be half empty.", "l2"),
    ):
        made = bars([Rows("fleet", {by: "string", "engine": "string"}, chosen())], "short")
        transformed(made, groupBy=_grouped(by, engine=["count"]), transpose={})
        shown = painted(made, COLOURS) if by == "bottleneck" else painted(made, L2_COLOURS, L2_NAMES)
        yield _panel(shown, title, words, (6, 8))


def _imbalance() -> Iterator[Panel]:
    columns = {
        name: FLEET[name] for name in ("model", "waiting", "running", "blocked", "used_low_tokens", "used_high_tokens")
    }
    ends = {"waiting": ["min", "max"], "running": ["min", "max"], "blocked": ["min", "max"]}
    made = rows([Rows("fleet", columns, chosen())], "blocked max")
    names = {f"{name} ({end})": f"{name} {end}" for name in ends for end in ("min", "max")}
    names |= {"used_low_tokens (min)": "KV held min", "used_high_tokens (max)": "KV held max"}
    grouped = _grouped("model", **ends, used_low_tokens=["min"], used_high_tokens=["max"])
    transformed(made, groupBy=grouped, organize={"renameByName": names})
    for name in ("blocked min", "blocked max"):
        column(made, name, unit="percentunit", decimals=0)
    for name in ("running min", "running max"):
        column(made, name, decimals=0)
    for name in ("KV held min", "KV held max"):
        column(made, name, unit="short")
    words = (
        "Smallest and largest of each model's ranks. Far apart while somebody waits: requests are not spread by what "
        "is free. KV is in tokens."
    )
    yield _panel(made, "Imbalance within a model", words, (12, 8))
