"""Every panel through Grafana's own libraries, with recordings: what a person would see of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from .asking import Values, escaped, filled, panels
from .judging import (
    ROOT,
    Seen,
    colours_of,
    complaints,
    dangling,
    steps_of,
    units_of,
)
from .lab import NAMED, STEP
from .past import Past
from .seen import Grafana
from .shown import text_of
from .typed import program

Boards = Mapping[str, dict[str, Any]]
GOLDEN = Path(__file__).parent / "golden"
TIMES = {"__url_time_range": "from=now-1h&to=now", "datasource": "prometheus", "window": NAMED}
ALL = dict.fromkeys(("job", "model", "instance", "rank"), ".*")
CASES = {
    "l1-bound": "vllm-0.32.0--c-l1-preempt", "healthy": "vllm-0.32.0--o-busy-not-bound",
    "l2-idle": "sglang-0.5.23--j1-hicache-l1-bound-l2-idle",
}  # fmt: skip


def views(held: Past) -> Iterator[tuple[str, str, Values]]:
    """Dashboards with their variables: the fleet, and each of the others for every instance's first rank."""
    yield "diagnoser-fleet", "all", ALL
    for name in held.names:
        for uid in ("diagnoser-engine", "diagnoser-l1-l2"):
            yield uid, name, {**ALL, "instance": escaped(name), "rank": "0"}


def asked(held: Past, panel: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """What look.mjs wants to know."""
    answers = {
        one["refId"]: held.asked(filled(one["expr"], values), bool(one.get("instant"))) for one in panel["targets"]
    }
    return {"panel": panel, "answers": answers, "variables": {**values, **TIMES}, "step": STEP}


@pytest.fixture(scope="module")
def seen(grafana: Grafana, held: Past, boards: Boards) -> list[Seen]:
    """All panels that ask Prometheus."""
    told = [(uid, who, panel, values) for uid, who, values in views(held) for panel in panels(boards[uid])]
    results = grafana.look(asked(held, panel, values) for _, _, panel, values in told)["panels"]
    return [Seen(uid, who, panel, one) for (uid, who, panel, _), one in zip(told, results, strict=True)]


def test_nothing_is_lost_unnamed_unmapped_or_unlinked(seen: Sequence[Seen], boards: Boards) -> None:
    assert complaints(boards, seen) == []


def test_a_fault_of_every_kind_is_found(grafana: Grafana, held: Past, boards: Boards) -> None:
    """Else the test above would show nothing."""
    (table,) = (one for one in panels(boards["diagnoser-fleet"]) if one["type"] == "table")
    good = asked(held, table, ALL)

    def told(old: str, new: str) -> str:
        panel = yaml.safe_load(re.sub(old, new, yaml.safe_dump(table, width=10_000)))
        assert panel != table, old
        (result,) = grafana.look([{**good, "panel": panel}])["panels"]
        return "\n".join(complaints(boards, [Seen("diagnoser-fleet", "all", panel, result)]))

    assert "the override of 'blokked' matches nothing" in told("options: blocked", "options: blokked")
    assert "no ['Value #Z']" in told("Value #B", "Value #Z")
    assert "'Value #C' is no name for people" in told("'Value #C': KV held", "'Value #C': 'Value #C'")
    assert "fields.jobs:percentencode} is not filled in" in told(r"fields\.job:", "fields.jobs:")
    assert "no such dashboard" in told("/d/diagnoser-engine", "/d/diagnoser-motor")
    assert "['var-rang'] unknown" in told("var-rank", "var-rang")
    assert "no such place" in told(r"verdicts\.md#", "verdicts.md#x")
    assert "urgency shows '4.99' for 4.99" in told("to: 4.999", "to: 4.001")


def test_every_code_is_a_word_with_a_colour(grafana: Grafana, held: Past, boards: Boards) -> None:
    """Also those that no recording has."""
    from boards.words import ANSWERS, CODES, L2_CODES, L2_NAMES

    words = {CODES[name]: name for name in CODES} | {L2_CODES[name]: shown for name, shown in L2_NAMES.items()}
    answers = {float(code): word for code, (word, _) in ANSWERS.items()}
    coded = {"rank:diagnoser_verdict": CODES, "rank:diagnoser_l2_state": L2_CODES}
    given, wanted = [], []
    for uid in ("diagnoser-fleet", "diagnoser-engine", "diagnoser-l1-l2"):
        drawn = [one for one in panels(boards[uid]) if one["type"] == "state-timeline"]
        for panel, target in ((one, target) for one in drawn for target in one["targets"]):
            codes = next((one for name, one in coded.items() if target["expr"].count(name) > 2), None)
            expected = answers if codes is None else {code: words[code] for code in codes.values()}
            values = [[at, str(code)] for at, code in enumerate(expected)]
            answer = {target["refId"]: [{"metric": {"instance": "a", "rank": "0"}, "values": values}]}
            given.append({"panel": panel, "answers": answer, "variables": {}, "step": 1})
            wanted.append(list(expected.values()))
    assert len(given) > 8
    for one, expected, result in zip(given, wanted, grafana.look(given)["panels"], strict=True):
        (field,) = (f for frame in result["frames"] for f in frame["fields"] if f["type"] == "number")
        assert [row["text"] for row in field["rows"]] == expected, one["panel"]["title"]
        assert all(row["color"] for row in field["rows"])


def test_the_three_states_are_stacked_in_their_order(seen: Sequence[Seen]) -> None:
    """Used at the bottom, then evictable, then available; the capacity is a line above them."""
    pools = [one for one in seen if one.panel["title"] == "L1: the KV pool"]
    orders = set()
    for one in pools:
        fields = one.series()
        orders.add(tuple(field["shown"] for field in fields))
        modes = {field["shown"]: field["config"]["custom"]["stacking"]["mode"] for field in fields}
        assert modes.pop("capacity", "none") == "none" and set(modes.values()) <= {"normal"}, one.where
        assert len({field["mode"] for field in fields}) == len(fields), one.where
    assert orders == {("used", "evictable", "available", "capacity"), ("used", "evictable or available", "capacity")}


def test_ranges_are_bands(seen: Sequence[Seen]) -> None:
    """Each upper edge is filled down to its lower one, which is drawn without a filling of its own."""
    edges = 0
    for one in seen:
        fields = {field["shown"]: field["config"].get("custom", {}) for field in one.series()}
        for name in fields:
            if name.endswith(", at most") and name.replace("most", "least") in fields:
                assert fields[name]["fillBelowTo"] == name.replace("most", "least"), one.where
                assert fields[name.replace("most", "least")]["fillOpacity"] == 0, one.where
                edges += 1
    assert edges > 20


def test_units_thresholds_and_colours_are_known(grafana: Grafana, boards: Boards) -> None:
    told = grafana.look([], colours=sorted(colours_of(list(boards.values()))))
    for uid, board in boards.items():
        for panel in panels(board):
            assert units_of(panel) <= set(told["units"]), f"{uid}: {panel['title']}"
            for steps in steps_of(panel):
                values = [step["value"] for step in steps]
                own = panel["fieldConfig"]["defaults"].get("custom", {})
                drawn = "thresholdsStyle" in own or panel["type"] != "timeseries" or len(steps) == 1
                assert drawn, f"{uid}: {panel['title']}: thresholds that no chart shows"
                assert values[0] is None and values[1:] == sorted(set(values[1:])), f"{uid}: {panel['title']}"
    unknown = {name for name, found in told["colours"].items() if found == name and not name.startswith("#")}
    assert not unknown - {"text"}


def test_annotations_are_regions_with_words(grafana: Grafana, held: Past, boards: Boards) -> None:
    """From the first second with a bottleneck to the last, each with its verdict."""
    (note,) = boards["diagnoser-engine"]["annotations"]["list"]
    answer = held.asked(filled(note["expr"], ALL), False)
    (told,) = grafana.look([], notes=[{"note": note, "answer": answer}])["notes"]
    assert told["step"] == "15s"
    shown = {(one["title"].strip(), one["text"], tuple(one["tags"])) for one in told["events"]}
    assert ("l1 preempting", "vllm-0.32.0--c-l1-preempt/0: critical, medium confidence", ("l1", "critical")) in shown
    assert not [one for one in shown if "mode" in one[0]], "the name of a label that is not there"
    assert ("slots", "vllm-0.32.0--e-max-num-seqs/0: critical, medium confidence", ("slots", "critical")) in shown
    assert all(one["time"] < one["timeEnd"] for one in told["events"] if "--c-l1-preempt" in one["text"])


def test_links_of_dashboards_lead_somewhere(boards: Boards) -> None:
    for uid, board in boards.items():
        for link in board["links"]:
            assert dangling(boards, link["url"]) == "", f"{uid}: {link['title']}"


def test_options_have_the_types_that_grafana_publishes(grafana: Grafana, boards: Boards) -> None:
    assert grafana.typed(program(boards)) == ""


def test_a_misspelled_option_is_found(grafana: Grafana, boards: Boards) -> None:
    wrong = deepcopy(dict(boards))
    table = next(one for one in panels(wrong["diagnoser-fleet"]) if one["type"] == "table")
    table["options"]["sortby"] = table["options"].pop("sortBy")
    chart = next(one for one in panels(wrong["diagnoser-engine"]) if one["type"] == "timeseries")
    chart["fieldConfig"]["defaults"]["custom"]["lineInterpolation"] = "stepafter"
    found = grafana.typed(program({uid: wrong[uid] for uid in ("diagnoser-fleet", "diagnoser-engine")}))
    assert len(found.splitlines()) == 2 and "sortby" in found and '"stepafter"' in found


def test_the_libraries_are_of_the_release_that_we_deploy(grafana: Grafana, boards: Boards) -> None:
    image = re.search(r"grafana/grafana:([\d.]+)", (ROOT / "docker-compose.yml").read_text())
    assert image is not None
    assert grafana.versions() == dict.fromkeys(("data", "prometheus", "schema"), image.group(1))
    newest = grafana.look([])["schema"]
    assert all(board["schemaVersion"] <= newest for board in boards.values())


@pytest.mark.parametrize("case", CASES)
def test_golden_engine(case: str, seen: Sequence[Seen], updating: bool) -> None:
    """What a person sees of one engine, on both of its dashboards."""
    _compare(f"{case}.txt", [one for one in seen if one.who == CASES[case]], updating)


def test_golden_fleet(seen: Sequence[Seen], updating: bool) -> None:
    _compare("fleet.txt", [one for one in seen if one.uid == "diagnoser-fleet"], updating)


def _compare(name: str, told: Sequence[Seen], updating: bool) -> None:
    text = text_of(told)
    if updating:
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8"), (
        "`pytest tests/outputs tests/dashboards --update-golden`, then read the difference"
    )
