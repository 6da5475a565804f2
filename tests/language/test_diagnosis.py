"""Whole diagnoses of real engines in Chinese: the same numbers, and no English sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from service.web_kit import recorded
from story import play, vllm

from diagnoser.doubt import doubt
from diagnoser.language import told
from diagnoser.language.diagnosis import in_language
from diagnoser.model import Diagnosis
from diagnoser.outputs.contract import as_data

RECORDINGS = (
    "vllm-0.32.0--c-l1-preempt", "sglang-0.5.23--d-reservation", "sglang-0.5.23--b-healthy", "vllm-0.32.0--i-killed",
    "sglang-0.5.23--j1-hicache-l1-bound-l2-idle", "vllm-0.32.0--m-dp2",
)  # fmt: skip
NAMES = {"id", "series", "signal", "op", "unit", "name", "kind", "code", "rule", "facts", "engine", "backend"}
"""Parts of the contract that are names in every language."""
ENGLISH = re.compile(r"(?<![\w/:=.-])[A-Za-z]{2,}(?: [A-Za-z]{2,}){2,}")
NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")


def pairs(english: Any, chinese: Any) -> Iterator[tuple[str, str]]:
    """Texts that stand in the same place; everything else must be equal."""
    if isinstance(english, dict):
        assert english.keys() == chinese.keys()
        for key in english.keys() - NAMES:
            yield from pairs(english[key], chinese[key])
    elif isinstance(english, list):
        for one, other in zip(english, chinese, strict=True):
            yield from pairs(one, other)
    elif isinstance(english, str):
        yield english, chinese
    else:
        assert english == chinese


def check(found: Diagnosis) -> None:
    english, chinese = as_data(found), as_data(in_language(found, "zh"))
    for said, now in pairs(english, chinese):
        assert sorted(NUMBER.findall(said)) == sorted(NUMBER.findall(now)), (said, now)
        assert not ENGLISH.search(now), now
    assert in_language(found, "en") is found


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_engine_in_chinese(name: str) -> None:
    for one in recorded(name):
        check(one)


STORIES: dict[str, Sequence[Mapping[str, float] | str]] = {
    "one page": [vllm(running=3, waiting=5, usage=0.5)],
    "failed polls": [vllm(running=3, waiting=5), *["test:8000 cannot be read (connection lost)."] * 3],
    "slots": [vllm(running=8, waiting=9, usage=0.2, generated=100.0 * i, finished=i, steps=9.0 * i) for i in range(12)],
    "stalled": [vllm(running=8, waiting=9, usage=0.99, generated=5, steps=9) for _ in range(30)],
    "leak": [vllm(running=0, waiting=0, usage=0.4, generated=5, steps=9) for _ in range(60)],
    "no queue": [vllm(usage=0.4, generated=5) for _ in range(5)],
    "impossible": [vllm(running=1, waiting=9, usage=-0.39, generated=5.0 * i) for i in range(5)],
}


@pytest.mark.parametrize("name", STORIES)
def test_a_story_in_chinese(name: str) -> None:
    for one in play(STORIES[name], 1.0):
        check(one)


@pytest.mark.parametrize("waiting", [0.0, 5.0])
def test_what_a_metrics_server_left_open_in_chinese(waiting: float) -> None:
    (found,) = play([vllm(running=3, waiting=waiting, usage=0.5, generated=9.0 * i) for i in range(9)], 1.0)
    (doubted,) = doubt([found], {found.engine.target: ("PromQL info: too few",)}, {})
    (failed,) = doubt([found], {}, {found.engine.target: "the server said 500"})
    assert told(doubted.verdict.headline, "zh") != doubted.verdict.headline
    assert told(failed.verdict.headline, "zh") == "未知：指标服务器没有给出这个引擎的答案"


def test_rules_of_the_users_own_keep_their_words() -> None:
    (found,) = recorded("vllm-0.32.0--c-l1-preempt")
    mine = replace(found.checks[0], label="my gate", question="Is my gate shut?", reason="shut for 5 s")
    (told_,) = in_language(replace(found, checks=(mine,)), "zh").checks
    assert (told_.label, told_.question, told_.reason) == ("my gate", "Is my gate shut?", "shut for 5 s")
