"""Rows for Grafana's Infinity data source, asked for as Grafana asks: epoch milliseconds, joined variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from diagnoser.service.api.grafanaquery import values
from service.web_kit import BOUND, HEALTHY, IDLE_L2, TWO_RANKS, Web, named, recorded, serve

GRAFANA = "/api/v1/grafana"
ONE, CALM = "10.0.3.7:8000/0", "10.0.3.8:30000/0"
START = recorded(BOUND, 60)[0].at


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve() as web:
        bound, calm = recorded(BOUND, 60)[0], recorded(HEALTHY)[0]
        for turn in range(4):
            first = bound if turn < 2 else calm
            at = START + 30 * turn
            web.evaluated(named(first, "10.0.3.7:8000", at), named(calm, "10.0.3.8:30000", at))
        others = (*recorded(TWO_RANKS), *recorded(IDLE_L2))
        web.evaluated(*(named(one, one.engine.target, START + 120) for one in others))
        yield web


def rows(web: Web, name: str, **query: Any) -> list[dict[str, Any]]:
    found = web.json(f"{GRAFANA}/{name}", params=query)
    assert isinstance(found, list)
    for row in found:
        assert all(value is None or isinstance(value, str | int | float) for value in row.values()), "rows are flat"
    return found


def span(after: float = -15, until: float = 130, **more: Any) -> dict[str, Any]:
    return {"from": round((START + after) * 1000), "to": round((START + until) * 1000), "interval_ms": 30_000, **more}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], set()),
        ([""], set()),
        (["$__all"], set()),
        (["All", "a"], set()),
        (["a"], {"a"}),
        (["a", "b"], {"a", "b"}),
        (["{a,b}"], {"a", "b"}),
        (["(a|b)"], {"a", "b"}),
        (["a,b"], {"a", "b"}),
    ],
)
def test_variables_as_grafana_joins_them(given: list[str], expected: set[str]) -> None:
    assert values(given) == expected


def test_fleet_table(web: Web) -> None:
    table = rows(web, "fleet")
    assert [row["urgency"] for row in table] == sorted((row["urgency"] for row in table), reverse=True)
    assert len({tuple(row) for row in table}) == 1, "the same columns in every row"
    calm = next(row for row in table if row["engine"] == CALM)
    assert calm["time"] == round((START + 90) * 1000) and calm["verdict"] == "none" and calm["remedy"] is None
    assert calm["used_low_tokens"] <= calm["used_high_tokens"] <= calm["capacity_tokens"]
    assert [row["engine"] for row in rows(web, "fleet", engine=f"{{{ONE},{CALM}}}", bottleneck="none")] == [ONE, CALM]
    assert rows(web, "fleet", model=["nobody", "nothing"]) == []
    assert len(rows(web, "fleet", engine="$__all", model="All")) == len(table)


def test_timeline_long_and_wide(web: Web) -> None:
    long = rows(web, "timeline", **span(engine=ONE))
    assert [(row["state"], row["verdict"]) for row in long] == [("l1", "l1/preempting")] * 2 + [("none", "none")] * 2
    assert long[0]["headline"].startswith("L1-BOUND") and long[0]["severity"] == "critical"
    assert [row["time"] for row in long] == sorted(row["time"] for row in long)
    wide = rows(web, "timeline", **span(engine=f"{ONE},{CALM}", format="wide"))
    assert [row[ONE] for row in wide] == ["l1", "l1", "none", "none"] and {row[CALM] for row in wide} == {"none"}
    assert rows(web, "timeline", **span(until=-10)) == []


def test_three_states_over_time(web: Web) -> None:
    found = rows(web, "pool", **span(engine=CALM))
    assert len(found) == 4 and found[0]["capacity"] == 8192.0
    for row in found:
        assert row["used"] + row["free"] == pytest.approx(row["capacity"], abs=1)


def test_signals_over_time(web: Web) -> None:
    found = rows(web, "signals", **span(engine=ONE, signal="{waiting_last_requests,running_mean_requests}"))
    assert {row["signal"] for row in found} == {"waiting_last_requests", "running_mean_requests"}
    waiting = [row["value"] for row in found if row["signal"] == "waiting_last_requests"]
    assert waiting[0] > 10 and waiting[-1] == 0
    assert web.get(f"{GRAFANA}/signals", params={"signal": "no_such"}).status_code == 404


def test_annotations(web: Web) -> None:
    found = rows(web, "annotations", **span(engine=ONE))
    assert [row["title"] for row in found] == [f"{ONE}: new -> l1/preempting", f"{ONE}: l1/preempting -> none"]
    assert found[1]["time"] == round((START + 60) * 1000) and "none" in found[1]["tags"].split(",")
    assert len(rows(web, "annotations", **span())) > 2
    assert rows(web, "annotations", **span(engine=ONE, severity="critical")) == [], "it is not critical any more"


@pytest.mark.parametrize(
    ("name", "some"),
    [
        ("engines", {ONE, CALM}),
        ("targets", {"10.0.3.7:8000"}),
        ("models", {"lab-llama"}),
        ("families", {"vllm", "sglang"}),
        ("ranks", {"0", "1"}),
        ("bottlenecks", {"l1", "none", "unreachable"}),
        ("severities", {"critical"}),
        ("signals", {"rho"}),
    ],
)
def test_values_of_variables(web: Web, name: str, some: set[str]) -> None:
    found = rows(web, f"variables/{name}")
    assert some <= {row["value"] for row in found} and all(row["text"] == row["value"] for row in found)


def test_values_depend_on_other_variables(web: Web) -> None:
    assert {row["value"] for row in rows(web, "variables/ranks", engine=f"{TWO_RANKS}/1")} == {"1"}


@pytest.mark.parametrize("moment", ["1795976000000", "1.795976e12", "2026-11-29T18:13:20Z", "2026-11-29T18:13:20"])
def test_times_in_the_forms_that_grafana_can_send(web: Web, moment: str) -> None:
    assert web.get(f"{GRAFANA}/timeline", params={"from": moment, "to": 1795999999000}).status_code == 200


@pytest.mark.parametrize("query", [{"from": "yesterday"}, {"from": 2, "to": 1}, {"interval_ms": 0}, {"format": "tall"}])
def test_wrong_queries_are_told(web: Web, query: dict[str, Any]) -> None:
    answer = web.get(f"{GRAFANA}/timeline", params=query)
    assert answer.status_code == 422 and answer.json()["errors"]


def test_too_many_engines_for_series_are_told() -> None:
    with serve() as web:
        web.evaluated(*(named(recorded(HEALTHY)[0], f"10.0.{i // 250}.{i % 250}:1") for i in range(501)))
        answer = web.get(f"{GRAFANA}/pool")
        assert answer.status_code == 422 and "choose fewer" in answer.json()["detail"]
        assert len(rows(web, "fleet")) == 501
