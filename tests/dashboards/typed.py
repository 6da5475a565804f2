"""Dashboards as a TypeScript program: every option gets the type that Grafana publishes for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .asking import panels

RAW = "./node_modules/@grafana/schema/dist/types/raw"
KINDS = {
    "table": "Table", "timeseries": "TimeSeries", "state-timeline": "StateTimeline", "stat": "Stat",
    "bargauge": "BarGauge",
}  # fmt: skip
WITHOUT_OWN = ("stat", "bargauge")
"""Kinds of panels whose fields have no properties of their own."""
OF_INTERVALS = ("auto", "auto_count", "auto_min")
"""What the SDK writes into every variable; Grafana reads it of interval variables only."""
ELSEWHERE = ("targets", "options", "fieldConfig")
"""Parts of a panel with types of their own."""
HEAD = f"""import type * as dashboard from '{RAW}/dashboard/x/dashboard_types.gen';
import type {{ PromQuery }} from './node_modules/@grafana/prometheus/dist/types/types';
// Enumerations as their values, and everything optional: JSON leaves out what has a default.
type Plain<T> = T extends string ? `${{T}}` : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Plain<U>[] : T extends object ? {{ [K in keyof T]?: Plain<T[K]> }} : T;
type Nothing = Record<string, never>;
export {{}};
"""


def program(boards: Mapping[str, Mapping[str, Any]]) -> str:
    """One constant for everything that has a type."""
    lines = [
        f"import type * as {name} from '{RAW}/composable/{name.lower()}/panelcfg/x/{name}PanelCfg_types.gen';"
        for name in KINDS.values()
    ]
    told = [each for uid, board in boards.items() for each in _board(uid, board)]
    for place, (where, kind, value) in enumerate(told):
        lines.append(f"const c{place}: Plain<{kind}> = {json.dumps(value)}; // {where}")
    return HEAD + "\n".join(lines) + "\n"


def _board(uid: str, board: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    rest = {key: value for key, value in board.items() if key not in ("panels", "annotations", "templating")}
    yield uid, "dashboard.Dashboard", rest
    for one in board["templating"]["list"]:
        kept = {key: value for key, value in one.items() if key not in OF_INTERVALS}
        yield f"{uid}: variable {one['name']}", "dashboard.VariableModel", kept
    for panel in panels(board):
        yield from ((f"{uid}: {panel['title']}", kind, value) for kind, value in _panel(panel))


def _panel(panel: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    name = KINDS[panel["type"]]
    own = "Nothing" if panel["type"] in WITHOUT_OWN else f"{name}.FieldConfig"
    defaults = panel["fieldConfig"]["defaults"]
    yield (
        "dashboard.Panel",
        {key: each for key, each in panel.items() if key not in ("targets", "options", "fieldConfig")},
    )
    yield f"{name}.Options", panel["options"]
    yield own, defaults.get("custom", {})
    yield "dashboard.FieldConfig", {key: each for key, each in defaults.items() if key != "custom"}
    for override in panel["fieldConfig"]["overrides"]:
        ids = {one["id"]: one["value"] for one in override["properties"]}
        yield own, {key.removeprefix("custom."): each for key, each in ids.items() if key.startswith("custom.")}
        yield "dashboard.FieldConfig", {key: each for key, each in ids.items() if not key.startswith("custom.")}
    if panel["datasource"]["type"] == "prometheus":
        yield "PromQuery[]", panel["targets"]
