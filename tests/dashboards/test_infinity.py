"""The Infinity variant against the service itself: every address answers, with the columns that the panels show."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from diagnoser.service.api.models import BOTTLENECKS

from .asking import panels
from .judging import Seen
from .judging import complaints as faults
from .lab import Lab, until
from .seen import Grafana

Boards = Mapping[str, dict[str, Any]]
ALL = {"model": "$__all", "engine": "$__all", "bottleneck": "$__all"}
COLUMNS = [
    "urgency", "engine", "model", "bottleneck", "mode", "confidence", "waiting", "blocked",
    "KV held ≥", "KV held ≤", "KV pool", "TTFT P99 ≥", "TTFT P99 ≤", "L2", "remedy", "since",
]  # fmt: skip
MAY_BE_EMPTY = {"Critical", "L1-bound", "Not known"}


def board(boards: Boards) -> Mapping[str, Any]:
    """The one."""
    return boards["diagnoser-fleet-infinity"]


def queries(one: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Of panels, annotations and variables."""
    for panel in panels(one):
        yield from ((panel["title"], target) for target in panel["targets"])
    for note in one["annotations"]["list"]:
        yield note["name"], note["target"]
    for variable in one["templating"]["list"][1:]:
        yield f"variable {variable['name']}", variable["query"]["infinityQuery"]


def rows(lab: Lab, query: Mapping[str, Any], values: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the data source would get."""
    now = time.time() * 1000
    known = {**values, "__from": f"{now - 600_000:.0f}", "__to": f"{now:.0f}", "__interval_ms": "5000"}
    given = {
        one["key"]: re.sub(r"\$\{(\w+)\}", lambda found: known[found.group(1)], one["value"])
        for one in query["url_options"]["params"]
    }
    found = httpx.get(lab.service + query["url"], params=given, timeout=60, trust_env=False)
    assert found.status_code == 200, found.text
    return list(found.json())


def complaints(lab: Lab, one: Mapping[str, Any], values: Mapping[str, str]) -> list[str]:
    """Queries without rows, or without a column that is shown."""
    out = []
    for title, query in queries(one):
        found = rows(lab, query, values)
        wanted = {column["selector"] for column in query["columns"]}
        if not found and title not in MAY_BE_EMPTY:
            out.append(f"{title}: no rows")
        if found and wanted - set().union(*found):
            out.append(f"{title}: no {wanted - set().union(*found)} in {sorted(found[0])}")
    return out


def test_every_query_has_rows_with_the_columns_it_shows(lab: Lab, boards: Boards) -> None:
    until(lambda: complaints(lab, board(boards), ALL))


def test_several_values_of_a_variable_are_understood(lab: Lab, boards: Boards) -> None:
    """Infinity joins them as {a,b}."""
    chosen = [engine.address for engine in lab.engines[:2]]
    several = {**ALL, "engine": "{" + ",".join(f"{address}/0" for address in chosen) + "}"}
    (table,) = (query for title, query in queries(board(boards)) if title == "Engines, worst first")

    def wrong() -> list[str]:
        found = {row["engine"] for row in rows(lab, table, several)}
        return [] if found == {f"{address}/0" for address in chosen} else [repr(found)]

    until(wrong)


def seen(grafana: Grafana, lab: Lab, one: Mapping[str, Any]) -> list[Seen]:
    """All panels with the rows of now, as Grafana's libraries show them."""
    told = [
        {
            "panel": panel, "variables": {**ALL, "datasource": "infinity"}, "step": 5,
            "answers": {target["refId"]: rows(lab, target, ALL) for target in panel["targets"]},
        }
        for panel in panels(one)
    ]  # fmt: skip
    results = grafana.look(told)["panels"]
    return [Seen(one["uid"], "all", given["panel"], result) for given, result in zip(told, results, strict=True)]


def test_panels_are_as_people_want_to_see_them(lab: Lab, grafana: Grafana, boards: Boards) -> None:
    """Nothing lost by transformations, overrides that match, names and units for people, codes as words."""
    until(lambda: faults(boards, seen(grafana, lab, board(boards))))
    told = {one.panel["title"]: one for one in seen(grafana, lab, board(boards))}
    stacked = {number["title"] for number in told["Ranks by bottleneck"].result["numbers"]}
    assert "l1" in stacked and stacked <= set(BOTTLENECKS)
    assert int(told["Engine ranks"].result["numbers"][0]["text"]) == len(
        [one for one in told["Verdict of every engine rank"].fields() if one["type"] == "string"]
    )
    assert [one["shown"] for one in told["Engines, worst first"].fields()] == COLUMNS


def test_a_column_that_the_service_does_not_have_is_found(lab: Lab, boards: Boards) -> None:
    """Else the tests above would show nothing."""
    (table,) = (query for title, query in queries(board(boards)) if title == "Engines, worst first")
    until(lambda: [] if rows(lab, table, ALL) else ["no rows yet"])
    columns = [*table["columns"], {"selector": "wating", "text": "waiting", "type": "number"}]
    wrong = {"panels": [{"type": "table", "title": "t", "targets": [{**table, "columns": columns}]}]}
    wrong = {**wrong, "annotations": {"list": []}, "templating": {"list": []}}
    assert complaints(lab, wrong, ALL)[0].startswith("t: no {'wating'}")
