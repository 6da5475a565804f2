"""Messages as people read them, in English and Chinese."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diagnoser.data import data_dir
from diagnoser.rulebook.load import load
from diagnoser.service.notify import words
from diagnoser.service.notify.event import Asked, Event, Message
from diagnoser.service.notify.words import text_of

from .alert_kit import START, event, resolved

BOOK = load([data_dir("rules")])
URL = "https://diagnoser.example/api/v1/engines/10.0.3.7%3A8000%2F0"


def test_a_gate_that_can_be_closed_has_words_for_its_share() -> None:
    assert {f"share_{gate}" for gate in BOOK.gate_names()} - {"share_unexplained"} <= set(words.PHRASES)


def test_a_firing_verdict_in_english() -> None:
    title, body = text_of(Message("x", (event(),)), "en")
    assert title == "[critical] L1-BOUND (preempting), L2 idle · llama-3-70b · 10.0.3.7:8000"
    assert body.splitlines() == [
        "KV space closed 92 % of the window · up to 41 wait (33 at the end) · 0.6 thrown out for each that finished"
        " · pool used up to 98 % · TTFT P99 in (20 s, 40 s]",
        "Do: Shed or cap arrivals now: --max-num-queued-reqs N (from 0.29), or a limit at the gateway",
        URL,
    ]


def test_a_firing_verdict_in_chinese() -> None:
    title, body = text_of(Message("x", (event(),)), "zh")
    assert title == "[严重] L1 受限（抢占），L2 空闲 · llama-3-70b · 10.0.3.7:8000"
    assert body.splitlines() == [
        "KV 空间在时间窗 92 % 的时间里不足；最多 41 个请求排队（最后 33 个）；每完成一个请求有 0.6 次抢占"
        "；KV 池占用最高 98 %；TTFT P99 在 (20 秒, 40 秒]",
        "处理：立即限流，减少新到请求：--max-num-queued-reqs N（0.29 起），或在网关限流",
        URL,
    ]


def test_a_rule_of_the_users_own_keeps_its_words_in_chinese() -> None:
    mine = replace(event(rule="my_rule"), headline="GPU ON FIRE, again", because=("It burns since noon.",), numbers={})
    title, body = text_of(Message("x", (replace(mine, share=None),)), "zh")
    assert title == "[严重] GPU ON FIRE, again · llama-3-70b · 10.0.3.7:8000"
    assert body.splitlines()[0] == "It burns since noon."


def test_a_description_holds_the_sentences_of_the_verdict_in_the_readers_language() -> None:
    assert words.description(event(), "zh").splitlines() == [
        "KV 空间在时间窗 92 % 的时间里不足。",
        "最多 41 个请求排队（最后 33 个）。",
        "处理：立即限流，减少新到请求：--max-num-queued-reqs N（0.29 起），或在网关限流",
    ]
    assert words.description(event(), "en").startswith("KV space was the closed gate for 92 % of the window.\n")


def test_what_an_earlier_version_left_in_the_outbox_is_told_in_chinese() -> None:
    """The outbox keeps English: the language is that of the receiver when it is sent."""
    message = Message.from_json(Message("x", (event(),)).to_json())
    assert text_of(message, "zh")[0] == "[严重] L1 受限（抢占），L2 空闲 · llama-3-70b · 10.0.3.7:8000"


@pytest.mark.parametrize(
    ("language", "title", "lines"),
    [
        (
            "en",
            "[resolved] L1-BOUND (preempting), L2 idle · llama-3-70b · 10.0.3.7:8000",
            ["lasted 12 min", "Now: NO BOTTLENECK", URL],
        ),
        (
            "zh",
            "[已恢复] L1 受限（抢占），L2 空闲 · llama-3-70b · 10.0.3.7:8000",
            ["持续 12 分钟", "现在：无瓶颈", URL],
        ),
    ],
)
def test_the_end_of_it(language: str, title: str, lines: list[str]) -> None:
    found = text_of(Message("x", (resolved(event()),)), language)  # type: ignore[arg-type]
    assert (found[0], found[1].splitlines()) == (title, lines)


def test_a_change_is_one_line_with_what_was_before() -> None:
    old, new = event(severity="warning"), event("slots")
    new = replace(new, was={"rule": old.rule, "headline": old.headline, "l2": old.l2, "severity": old.severity})
    title, body = text_of(Message("x", (resolved(old, reason="changed"), new)), "en")
    assert title == "[critical] SLOTS-BOUND, L2 idle · llama-3-70b · 10.0.3.7:8000"
    assert "Before: L1-BOUND (preempting), L2 idle" in body.splitlines()


def test_many_are_listed_and_the_others_counted() -> None:
    many = tuple(event(target=f"10.0.0.{i}:8000") for i in range(14))
    title, body = text_of(Message("x", many, {"model": "llama-3-70b"}), "en")
    assert title == "14 engine ranks bound, 0 resolved · llama-3-70b"
    lines = body.splitlines()
    assert len([line for line in lines if line.startswith("[critical]")]) == 10
    assert lines[-3:-1] == [
        "and 4 more",
        "Do: Shed or cap arrivals now: --max-num-queued-reqs N (from 0.29), or a limit at the gateway",
    ]


def test_a_rank_that_is_not_the_first_is_named() -> None:
    assert text_of(Message("x", (event(rank="1"),)), "en")[0].endswith("10.0.3.7:8000 rank 1")


def test_a_repeat_says_so() -> None:
    assert text_of(Message("x", (event(),)), "en", 3)[0].endswith(" (sent again, attempt 3: may be a repeat)")
    assert text_of(Message("x", (event(),)), "zh", 3)[0].endswith("（第 3 次发送，可能重复）")


def test_an_unreachable_engine_says_why() -> None:
    dead = replace(event("unreachable"), because=("10.0.3.7:8000 refused the connection.",), numbers={}, share=None)
    assert text_of(Message("x", (dead,)), "en")[1].splitlines()[0] == "10.0.3.7:8000 refused the connection."
    assert text_of(Message("x", (dead,)), "zh")[0].startswith("[严重] 无法访问")


def asked(named: int = 1, newest: tuple[str, ...] = ()) -> Asked:
    return Asked("SlowTTFT", "firing", {"alertname": "SlowTTFT"}, START, None, START - 300, START, named, newest)


def test_an_answer_to_an_alert() -> None:
    title, body = text_of(Message("x", (event(),), {}, asked(6, ("10.0.3.7:8000/0",))), "en")
    assert title == "Alert SlowTTFT (firing) diagnosed"
    assert body.splitlines()[0] == "[critical] L1-BOUND (preempting), L2 idle · llama-3-70b · 10.0.3.7:8000"
    assert body.splitlines()[-2:] == [
        "It names 6 engine ranks; these are the 1 worst now.",
        "No page of that time is kept: the newest verdict of 10.0.3.7:8000/0.",
    ]
    assert text_of(Message("x", (event(),), {}, asked()), "zh")[0] == "告警 SlowTTFT（触发）的诊断"


def test_a_digest_names_every_message() -> None:
    parts = tuple(Message(f"{i}", (event(target=f"t{i}"),)) for i in range(3))
    title, body = text_of(Message("digest", messages=parts), "en")
    assert title == "3 messages in one (rate limit)"
    assert [f"t{i}" in line for i, line in enumerate(body.splitlines()[:3])] == [True] * 3
    assert text_of(Message("digest", messages=parts), "zh")[0] == "限流合并：3 条消息"


def test_a_message_survives_the_outbox() -> None:
    found: tuple[Event, ...] = (event(labels={"team": "聊天"}), resolved(event()))
    message = Message("x", found, {"model": "m"}, asked(), (Message("y", found),))
    assert Message.from_json(message.to_json()) == message
