"""What a dashboard must have, whatever it shows; and that the committed JSON is what the code builds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from diagnoser.promql.export import RUNBOOKS

from .asking import panels

ROOT = Path(__file__).parents[2]
Boards = Mapping[str, dict[str, Any]]
UIDS = {"diagnoser-fleet", "diagnoser-engine", "diagnoser-l1-l2", "diagnoser-fleet-infinity"}
PLUGINS = {"diagnoser-fleet-infinity": "yesoreyeram-infinity-datasource"}


def everywhere(boards: Boards) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All panels, with where they are."""
    for uid, board in boards.items():
        yield from ((f"{uid}: {panel['title']}", panel) for panel in panels(board))


def texts(node: Any) -> Iterator[str]:
    """All strings below."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for one in node.values() if isinstance(node, dict) else node:
            yield from texts(one)


def test_the_committed_json_is_what_the_code_builds() -> None:
    from boards.files import files

    made = files()
    assert {f"{uid}.json" for uid in UIDS} == set(made)
    for name, text in made.items():
        assert (ROOT / "dashboards" / name).read_text() == text, f"{name}: run python dashboards/build.py"


def test_uids_and_ids_are_fixed(boards: Boards) -> None:
    assert set(boards) == UIDS
    for uid, board in boards.items():
        assert board["uid"] == uid
        assert board["editable"] is False and board["title"] and board["description"]
        assert [panel["id"] for panel in board["panels"]] == list(range(1, len(board["panels"]) + 1))


def test_every_panel_says_what_it_shows(boards: Boards) -> None:
    for where, panel in everywhere(boards):
        assert len(panel["description"]) > 20, where
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"], where
        assert defaults["thresholds"]["steps"][0]["color"], where
        refs = [target["refId"] for target in panel["targets"]]
        assert refs and len(refs) == len(set(refs)), where


def test_panels_do_not_overlap(boards: Boards) -> None:
    for uid, board in boards.items():
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert at["x"] + at["w"] <= 24 and not cells & taken, f"{uid}: {panel['title']}"
            taken |= cells


def test_every_panel_uses_the_data_source_variable(boards: Boards) -> None:
    for uid, board in boards.items():
        kind = PLUGINS.get(uid, "prometheus")
        first = board["templating"]["list"][0]
        assert (first["type"], first["name"], first["query"]) == ("datasource", "datasource", kind)
        found = [panel["datasource"] for panel in panels(board)] + [
            n["datasource"] for n in board["annotations"]["list"]
        ]
        assert all(one == {"type": kind, "uid": "${datasource}"} for one in found)


def test_variables_for_model_instance_and_rank(boards: Boards) -> None:
    for uid in UIDS - set(PLUGINS):
        names = [one["name"] for one in boards[uid]["templating"]["list"]]
        assert names == ["datasource", "window", "job", "model", "instance", "rank"]


def test_dashboards_link_to_each_other_and_to_the_pages(boards: Boards) -> None:
    for uid, board in boards.items():
        urls = {link["url"] for link in board["links"]}
        assert {f"/d/{other}" for other in UIDS - {uid}} <= urls
        assert f"{RUNBOOKS}/verdicts.md" in urls and f"{RUNBOOKS}/checks/README.md" in urls


def test_links_lead_to_pages_that_exist(boards: Boards) -> None:
    for text in texts(list(boards.values())):
        for page in re.findall(re.escape(RUNBOOKS) + r"/([\w/.-]*\.md)(?![\w{])", text):
            assert (ROOT / "docs" / page).is_file(), text
        for uid in re.findall(r"^/d/([\w-]+)", text):
            assert uid in boards


def test_the_checklist_knows_every_check(boards: Boards) -> None:
    """Ids become labels, and every id has its page."""
    (answered,) = (panel for where, panel in everywhere(boards) if where.endswith("Checklist: answered"))
    shown = re.search(r'check=~"([\w|]+)"', answered["targets"][0]["expr"])
    assert shown is not None
    for check in shown.group(1).split("|"):
        assert (ROOT / "docs" / "checks" / f"{check}.md").is_file()
        assert any(f'"{check}"' in repr(one).replace("'", '"') for one in answered["fieldConfig"]["overrides"])


def test_every_bottleneck_has_one_colour_everywhere(boards: Boards) -> None:
    from boards.words import COLOURS

    from diagnoser.service.api.models import BOTTLENECKS

    assert set(COLOURS) == set(BOTTLENECKS)
    assert len(set(COLOURS.values())) == len(COLOURS)
