"""What all dashboards share: uids, variables, links, annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard as of
from grafana_foundation_sdk.models.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    VariableHide,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from boards.panels import PROMETHEUS, Panel
from boards.promql import OF_ALL, WINDOW, recorded
from boards.words import DOCS

FLEET, ENGINE, TIERS, INFINITY = "diagnoser-fleet", "diagnoser-engine", "diagnoser-l1-l2", "diagnoser-fleet-infinity"
TITLES = {
    FLEET: "Fleet overview", ENGINE: "Engine detail", TIERS: "L1 versus L2", INFINITY: "Fleet overview (Infinity)",
}  # fmt: skip
ALL = VariableOption(selected=True, text="All", value="$__all")
CHOSEN = ("job", "model", "instance", "rank")
"""Variables, each of those that match the ones before."""


def board(uid: str, words: str, variables: Sequence[Any], notes: Sequence[Any], panels: Sequence[Panel]) -> Dashboard:
    """A dashboard; a text among the panels begins a row of that name."""
    made = of.Dashboard(f"diagnose: {TITLES[uid]}").uid(uid).description(words).tags(["diagnoser", "llm"])
    made.readonly().time("now-1h", "now").refresh("15s").timezone("browser").tooltip(DashboardCursorSync.CROSSHAIR)
    made.variables(list(variables)).links(list(_links(uid))).annotations(list(notes))
    for panel in panels:
        if isinstance(panel, str):
            made.with_row(of.Row(panel))
        else:
            made.with_panel(panel)
    return _numbered(made.build())


def _numbered(made: Dashboard) -> Dashboard:
    """Ids by place: links to single panels stay right when the JSON is made anew."""
    for number, panel in enumerate(made.panels or [], start=1):
        panel.id_val = number
    return made


def _links(uid: str) -> Sequence[Any]:
    """To the other dashboards with time and variables, and to the pages that say what a verdict means."""
    made = [
        of.DashboardLink(TITLES[other]).url(f"/d/{other}").type(DashboardLinkType.LINK).icon("dashboard")
        .tooltip(f"{TITLES[other]}, same time and engines").keep_time(True).include_vars(INFINITY not in (uid, other))
        for other in TITLES if other != uid
    ]  # fmt: skip
    for title, page in (("Verdicts", "verdicts.md"), ("Checks", "checks/README.md")):
        link = of.DashboardLink(title).url(f"{DOCS}/{page}").type(DashboardLinkType.LINK).icon("doc")
        made.append(link.tooltip("What it means, and what helps").target_blank(True))
    return made


# ---------------------------------------------------------------- Prometheus


def source() -> Any:
    """The data source."""
    return (
        of.DatasourceVariable("datasource").label("Prometheus").type("prometheus").description("Where the rules run.")
    )


def window() -> Any:
    """The window that the recording rules were exported with: it is part of their names, and read off them."""
    query = {"query": "metrics(^rank:diagnoser_verdict:)", "refId": "window", "qryType": 2}
    made = of.QueryVariable("window").label("window").query(query).regex("/^rank:diagnoser_verdict:(.+)$/")
    made.datasource(PROMETHEUS).refresh(VariableRefresh.ON_DASHBOARD_LOAD).sort(VariableSort.NATURAL_ASC)
    return made.description("The --window that the recording rules were exported with.")


def chosen(name: str, several: bool) -> Any:
    """A variable filled from the labels of the recorded verdicts."""
    before = CHOSEN[: CHOSEN.index(name)]
    matchers = ",".join(part for part in OF_ALL.split(",") if part.partition("=~")[0] in before)
    query = f"label_values(rank:diagnoser_verdict:{WINDOW}{{{matchers}}}, {name})"
    made = of.QueryVariable(name).label(name).query({"query": query, "refId": name, "qryType": 1})
    made.datasource(PROMETHEUS).refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.NATURAL_ASC)
    made.description(f"The {name} of engines that have a recorded verdict.").hide(VariableHide.DONT_HIDE)
    return made.multi(True).include_all(True).all_value(".*").current(ALL) if several else made


def variables(several: bool) -> Sequence[Any]:
    """One engine rank, or any number of them."""
    return [source(), window(), *(chosen(name, several or name in ("job", "model")) for name in CHOSEN)]


class _Shown(AnnotationQuery):
    """The SDK knows the fields of Grafana's own annotations only."""

    def to_json(self) -> dict[str, object]:
        text = "{{instance}}/{{rank}}: {{severity}}, {{confidence}} confidence"
        shown = {"titleFormat": "{{verdict}}", "textFormat": text, "tagKeys": "bottleneck,severity"}
        return {**super().to_json(), **shown, "step": "15s"}


class Bottlenecks:
    """Annotations: times with a bottleneck, as regions."""

    def build(self) -> AnnotationQuery:
        """As the SDK's builders. For a label that is missing Grafana writes its name: not every verdict has a mode."""
        found = recorded("verdict", 'bottleneck!~"none|unknown"')
        return _Shown(
            name="Bottlenecks", datasource=PROMETHEUS, enable=True, hide=False, icon_color="red",
            expr=f'label_join({found}, "verdict", " ", "bottleneck", "mode")',
        )  # fmt: skip
