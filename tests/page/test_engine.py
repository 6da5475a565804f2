"""One engine: the terminal's words, evidence, charts, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any
from urllib.parse import quote

from service.web_kit import BOUND, DEAD, HEALTHY, IDLE_L2, RESERVED, TWO_RANKS, Web, recorded

from diagnoser import units
from diagnoser.model import Diagnosis
from diagnoser.outputs import words
from diagnoser.outputs.contract import as_data
from diagnoser.outputs.terminal.checklist import relevant
from page.kit import Tab, now

HOST = "10.0.3.9:30000"
CANVAS = "#engine .plot canvas"


def address(web: Web, target: str = HOST) -> str:
    return f"{web.url}/#/engine/{quote(target + '/0', safe='')}"


def course(web: Web, target: str = HOST) -> Diagnosis:
    """Two minutes of a recording, evaluated one after the other; returns the last."""
    found = [now(IDLE_L2, target, 30.0 + 10 * n, ago=60.0 - 10 * n) for n in range(6)]
    for one in found:
        web.evaluated(one)
    return found[-1]


def test_the_verdict_and_the_checklist_in_the_words_of_the_terminal(web: Web, tab: Tab) -> None:
    found = course(web)
    page = tab.open(address(web), "#engine .headline")
    assert tab.text(".headline") == f"● {found.verdict.headline}"
    assert page.locator(".because li").all_inner_texts() == list(found.verdict.because)
    assert tab.text(".gravity").startswith(words.gravity(found))
    assert tab.text(".who") == f"SGLang {found.engine.version} · {found.engine.model} · {words.span(found)}"
    lines, no, unknown = relevant(found)
    labels = page.locator(".checklist > .check .label").all_inner_texts()
    assert labels == [one.label for one in lines if one.answer.value == "yes"]
    reasons = page.locator(".checklist > .check .reason").all_inner_texts()
    assert reasons == [one.reason for one in lines if one.answer.value == "yes"]
    named = page.locator(".checklist > .fold > summary").all_inner_texts()
    assert all(one.label in named[0] for one in no) and all(one.label in named[1] for one in unknown)
    remedies = page.locator(".todo li").all_inner_texts()
    for said, one in zip(remedies, found.remedies, strict=True):
        assert all(part in said for part in (one.action, one.flag, one.effect, one.side_effect))
    assert page.locator(".not").all_inner_texts() == [f"Not: {said}" for said in found.not_remedies]
    assert page.locator(".what-if li").count() == len(found.what_if)


def test_the_bars_say_what_the_terminal_says(web: Web, tab: Tab) -> None:
    found = course(web)
    tab.open(address(web), "#engine .headline")
    said = tab.text(".bars").replace(words.NO_BREAK, " ")
    used = words.used_part(found)
    assert used is not None and found.l2 is not None and found.more_l2 is not None
    for part in (words.percents(used), words.rest_words(found.l1), words.tier_words(found), found.more_l2.reason):
        assert part in said
    for name, share in words.ttft_parts(found):
        assert f"{words.PARTS[name]} {units.percent(share)}" in said
    assert words.ttft_p99(found, short=True) in said and words.ttft_now(found) in " ".join(said.split("\n"))
    assert "KV space 100 %" in said


def test_evidence_unfolds_and_stays_so_while_news_come(web: Web, tab: Tab) -> None:
    course(web)
    page = tab.open(address(web), "#engine .headline")
    check = page.locator('[data-key="check-kv_space_closed"]')
    assert not check.locator(".evidence").is_visible()
    check.locator("summary").first.focus()
    page.keyboard.press("Enter")
    check.locator(".evidence").wait_for()
    assert "share_l1 100 %" in check.locator(".evidence").inner_text()
    check.get_by_text("Why it is asked").click()
    tab.wait("document.querySelector('[data-key=\"explain-kv_space_closed\"] dl').textContent.length > 50")
    check.locator("summary").first.focus()
    at = tab.text(".who")
    web.evaluated(now(IDLE_L2, HOST, 78.0))
    tab.wait(f"document.querySelector('.who').textContent !== {json.dumps(at)}")
    assert check.locator("ul").is_visible()
    assert page.evaluate("document.activeElement.closest('details').dataset.key") == "check-kv_space_closed"


def test_what_somebody_marks_to_copy_stays_marked(web: Web, tab: Tab) -> None:
    course(web)
    page = tab.open(address(web), "#engine .todo code")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.todo code'))")
    flag = tab.text(".todo code >> nth=0")
    at = tab.text(".who")
    web.evaluated(now(IDLE_L2, HOST, 78.0))
    tab.wait(f"document.querySelector('.who').textContent !== {json.dumps(at)}")
    assert page.evaluate("String(getSelection())") == flag


def test_charts_of_pool_l2_waiting_and_ttft(web: Web, tab: Tab) -> None:
    course(web)
    page = tab.open(address(web), CANVAS)
    tab.wait(f"document.querySelectorAll('{CANVAS}').length === 4")
    said = page.locator("#engine .plot .canvas").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert said[0].startswith("L1: the KV pool, tokens. Newest:") and "8,192 tokens" in said[0] and ".." in said[0]
    assert "used 0 %" in said[1] and "· L1" in said[2] and "queue" in said[3]
    legend = page.locator('[data-plot="pool"] .legend').inner_text()
    for name in ("used", "used or not (range)", "evictable", "available", "capacity"):
        assert name in legend.split("\n")
    colours = page.evaluate(
        f"""() => {{
          const canvas = document.querySelector("{CANVAS}");
          const {{ data }} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const found = new Set();
          for (let at = 0; at < data.length; at += 4)
            if (data[at + 3] === 255) found.add(data.slice(at, at + 3).join(","));
          return [...found];
        }}"""
    )
    for colour in ("200,64,44", "227,164,47", "183,211,226"):  # used, evictable, available
        assert colour in colours
    assert page.locator(".strip i").count() >= 1
    for seconds in ("900", "86400"):
        page.select_option("#range", seconds)
        page.wait_for_selector(CANVAS)


def test_the_pool_of_vllm_is_shown_as_the_range_it_is(web: Web, tab: Tab) -> None:
    web.evaluated(now("vllm-0.32.0--o-busy-not-bound", HOST, 30))
    page = tab.open(address(web), CANVAS)
    legend = page.locator('[data-plot="pool"] .legend').inner_text().split("\n")
    assert "evictable or available" in legend and "evictable" not in legend and "available" not in legend
    assert "evictable + available" in tab.text(".bars") and "There is no L2." in tab.text('[data-plot="l2"]')


def test_layers_of_the_pool_lie_one_upon_the_other(web: Web, tab: Tab) -> None:
    page = tab.open(web.url)
    names = (BOUND, HEALTHY, IDLE_L2, RESERVED, TWO_RANKS, DEAD)
    for name, after in product(names, (5.0, 20.0, 40.0, 60.0)):
        one = as_data(recorded(name, after)[0])
        found = page.evaluate(
            "async (pool) => { const [w, s] = await Promise.all([import('/static/js/words.js'),"
            " import('/static/js/engine/series.js')]); return s.layers(w.poolOf(pool)); }",
            one["l1"],
        )
        if found is None:
            assert one["l1"]["used_tokens"] is None or not one["l1"]["capacity_tokens"]
            continue
        order = [0, found["low"], found["high"], found["evictable"], found["top"]]
        assert order == sorted(order) and found["top"] <= max(found["capacity"], found["high"])


def test_numbers_are_written_as_in_the_terminal(web: Web, tab: Tab) -> None:
    page = tab.open(web.url)
    values = [
        0, 1e-7, 0.0004, 0.0005, 0.001, 0.005, 0.0123, 0.05, 0.125, 0.375, 0.5, 0.8155, 0.9949, 0.995, 0.9996, 1,
        1.5, 2.5, 3.49, 9.4, 9.5, 9.99, 12.345, 59.6, 99.5, 100.4, 119.4, 120, 999.5, 1000, 1234.5, 7199, 7200,
        12345.678, 99999.4, 123456, 8192, 262145, 12345678.9, -3.25, -0.0004,
    ]  # fmt: skip
    names = ("percent", "count", "seconds", "size", "rate", "duration")
    found = page.evaluate(
        "async ([names, values]) => { const all = await import('/static/js/format.js');"
        " return names.map((name) => values.map((value) => all[name](value))); }",
        [names, values],
    )
    for name, said in zip(names, found, strict=True):
        function: Callable[[float], str] = getattr(units, name)
        expected = [function(float(value)) for value in values]
        wrong = [(v, s, e) for v, s, e in zip(values, said, expected, strict=True) if s != e]
        # Nothing in the terminal lasts for days; on the page a verdict may.
        assert [one for one in wrong if name != "duration" or one[0] < 172_800] == [], name


def test_sentences_are_those_of_the_terminal(web: Web, tab: Tab) -> None:
    page = tab.open(web.url)
    for name, after in product((BOUND, HEALTHY, IDLE_L2, RESERVED, TWO_RANKS), (10.0, 40.0, 60.0)):
        found = recorded(name, after)[0]
        said: dict[str, Any] = page.evaluate(
            "async (one) => { const w = await import('/static/js/words.js'); const pool = w.poolOf(one.l1);"
            " return {rest: w.restWords(pool), tier: w.tierWords(one.l2), split: w.splitKnown(pool),"
            " gravity: w.gravity(one.verdict), p99: w.bucket(one.ttft?.p99), now: w.ttftNow(one).join(' ')}; }",
            as_data(found),
        )
        assert said["rest"] == words.rest_words(found.l1) and said["split"] == words.split_known(found.l1)
        assert words.tier_words(found) in said["tier"] and said["gravity"] == words.gravity(found)
        assert said["now"] == words.ttft_now(found) and said["p99"] == words.ttft_p99(found, short=True)


def test_an_engine_that_died_and_one_that_is_gone(web: Web, tab: Tab) -> None:
    tab.tolerated = ("status of 404",)
    web.evaluated(now(DEAD, HOST))
    page = tab.open(address(web), "#engine .headline")
    assert "UNREACHABLE" in tab.text(".headline") and "On its last page:" in tab.text(".bars")

    async def drop() -> None:
        web.world.board.drop([entry.key for entry in web.world.board.entries()])

    web.do(drop())
    page.get_by_text("This engine is not watched (any more).").wait_for()
    assert "UNREACHABLE" in tab.text(".headline"), "what was known stays to be read"


def test_changes_of_this_engine_only(web: Web, tab: Tab) -> None:
    web.evaluated(now(HEALTHY, HOST), now(HEALTHY, "10.0.3.7:8000"))
    web.evaluated(now(BOUND, HOST, 60), now(BOUND, "10.0.3.7:8000", 60))
    page = tab.open(address(web), "#engine .changes li")
    assert page.locator("#engine .changes li").count() == 1
    assert "none → L1 (preempting) critical" in tab.text("#engine .changes")
