"""The language of an answer: query before header, weights, what caches must know, and that only sentences change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from diagnoser.language.diagnosis import in_language
from diagnoser.outputs.contract import as_data
from diagnoser.service.api.languages import best

from .web_kit import BOUND, IDLE_L2, RECORDINGS, Web, named, recorded, serve

HOST = "10.0.3.7:8000"
ENGINE = f"/api/v1/engines/{quote(HOST + '/0', safe='')}"
ZH = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"}
SAYING = (
    "/api/v1/engines", "/api/v1/verdicts", ENGINE, f"{ENGINE}/verdict", f"{ENGINE}/checklist", f"{ENGINE}/what-if",
    f"{ENGINE}/capacity", "/api/v1/history/verdicts", "/api/v1/transitions", "/api/v1/events?seconds=0.1",
    "/api/v1/rules", "/api/v1/rules/checks", "/api/v1/rules/checks/head_does_not_fit", "/api/v1/grafana/fleet",
    "/api/v1/grafana/timeline", "/api/v1/grafana/annotations", "/api/v1/status",
)  # fmt: skip
"""Every GET that answers with sentences."""


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve() as running:
        running.evaluated(named(recorded(IDLE_L2)[0], HOST), named(recorded(BOUND, 60.0)[0], "10.0.3.8:8000"))
        yield running


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"), ("zh", "zh"), ("zh-CN,zh;q=0.9,en;q=0.5", "zh"), ("en-US,en;q=0.9,zh;q=0.8", "en"),
        ("de, zh-Hans;q=0.3, en;q=0.2", "zh"), ("de", "en"), ("*", "en"), ("zh;q=0", "en"), ("zh;q=0, *;q=0.1", "en"),
        ("ZH-tw", "zh"), ("en;q=0.5, zh;q=0.5", "en"), ("zh;q=nonsense", "en"), ("zh;q=7, en;q=0.1", "en"),
        ("zh;q=nan", "en"), (",;=,zh", "zh"), ("zhx", "en"),
        ("zh ; q=0.9 , en ; q=0.8", "zh"), ("x," * 9999 + "zh", "en"),
    ],
)  # fmt: skip
def test_the_best_language_of_a_header(accepted: str, language: str) -> None:
    assert best(accepted) == language


@pytest.mark.parametrize("path", SAYING)
def test_an_answer_says_its_language_and_what_it_depends_on(web: Web, path: str) -> None:
    for headers, asked, language in (({}, "", "en"), (ZH, "", "zh"), (ZH, "en", "en"), ({}, "zh", "zh")):
        parts = [f"language={asked}"] if asked else []
        url, given = path.partition("?")[0], path.partition("?")[2]
        answer = web.get("?".join(filter(None, (url, "&".join(filter(None, (given, *parts)))))), headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers["Content-Language"] == language
        assert "Accept-Language" in answer.headers["Vary"]


@pytest.mark.parametrize("path", SAYING)
def test_a_language_that_there_is_not_is_refused(web: Web, path: str) -> None:
    answer = web.get(f"{path}{'&' if '?' in path else '?'}language=fr")
    assert answer.status_code == 422 and answer.headers["Content-Type"] == "application/problem+json"
    assert "Content-Language" not in answer.headers


def test_a_verdict_in_chinese_is_the_same_verdict(web: Web) -> None:
    found = in_language(named(recorded(IDLE_L2)[0], HOST), "zh")
    answer = web.get(f"{ENGINE}/verdict", headers=ZH).json()
    assert answer == json.loads(json.dumps(as_data(found)))
    assert answer["verdict"]["headline"] == "L1 受限（预留），L2 空闲"
    line = web.json(f"{ENGINE}?language=zh")
    assert line["headline"] == answer["verdict"]["headline"] and "：" in line["first_remedy"]


def test_an_etag_is_of_one_language(web: Web) -> None:
    for path in (ENGINE, f"{ENGINE}/verdict", "/api/v1/engines", "/api/v1/verdicts"):
        english = web.get(path).headers["ETag"]
        chinese = web.get(path, headers=ZH)
        assert chinese.headers["ETag"] != english
        assert web.get(path, headers={**ZH, "If-None-Match": english}).status_code == 200
        again = web.get(path, headers={**ZH, "If-None-Match": chinese.headers["ETag"]})
        assert again.status_code == 304 and again.headers["Content-Language"] == "zh"


def test_events_are_told_in_chinese(web: Web) -> None:
    text = web.get("/api/v1/events?seconds=0.2&language=zh").text
    assert "L1 受限（预留）" in text and "L1-BOUND" not in text


def test_an_explanation_says_which_of_it_is_english(web: Web) -> None:
    rule = web.json("/api/v1/rules/checks/head_does_not_fit?language=zh")
    assert rule["title"] == "池里是否放不下典型的队首？" and "名称" in rule["text"]
    languages = {part["name"]: part["language"] for part in rule["parts"]}
    assert languages["理由"] == "zh" and languages["来源"] == languages["详情"] == "en"
    english = web.json("/api/v1/rules/checks/head_does_not_fit")
    assert {part["language"] for part in english["parts"]} == {"en"}
    verdicts = web.json("/api/v1/rules/verdicts?language=zh")
    assert "L1 受限（抢占），{l2_phrase}" in [one["title"] for one in verdicts]


def test_an_upload_is_diagnosed_in_chinese(web: Web) -> None:
    body = Path(RECORDINGS / f"{BOUND}.tar.xz").read_bytes()
    answer = web.client.post("/api/v1/diagnose?language=zh&step=30", content=body)
    assert answer.status_code == 200 and answer.headers["Content-Language"] == "zh"
    found = answer.json()
    assert found["diagnoses"][0]["verdict"]["headline"].startswith("L1 受限")
    assert {one["headline"] for one in found["timeline"]} & {"L1 受限（抢占），没有 L2", "无瓶颈", "无瓶颈：空闲"}


def test_every_answer_with_a_headline_takes_the_language(web: Web) -> None:
    """By the description: whoever adds an operation that says sentences adds it here."""
    paths = web.json("/api/v1/openapi.json")["paths"]
    taking = {
        path
        for path, operations in paths.items()
        for operation in operations.values()
        if {"language", "accept-language"} <= {one["name"] for one in operation.get("parameters", ())}
    }
    assert {"/api/v1/diagnose", "/api/v1/rules/{kind}/{rule}", "/api/v1/events"} <= taking
    assert len(taking) == len(SAYING) + 1
