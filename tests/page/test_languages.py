"""English and Chinese, and the width of a phone."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from service.web_kit import BOUND, DEAD, HEALTHY, IDLE_L2, TWO_RANKS, Web

from diagnoser.data import data_dir
from diagnoser.doubt import FAILED, PARTIAL
from diagnoser.language.diagnosis import in_language
from diagnoser.rulebook.load import load
from diagnoser.signals.base import intervals, signals
from page.kit import LIVE, ROWS, Tab, now

OWN_FORMAT = {"", "bool", "ratio", "seconds", "bytes"}
"""Units that are no word behind the number."""
HOST = "10.0.3.9:30000"
ENGINE = f"/#/engine/{quote(HOST + '/0', safe='')}"


def fleet(web: Web) -> None:
    long = "a-rather-long-host-name.of-some-cluster.example.internal:30000"
    ranks = [now(TWO_RANKS, "10.0.3.5:8000", rank=rank) for rank in (0, 1)]
    web.evaluated(now(BOUND, "10.0.3.7:8000", 60), now(HEALTHY, long), now(IDLE_L2, HOST), *ranks)


def test_chinese_by_the_browsers_language(web: Web, new_tab: Callable[..., Tab]) -> None:
    fleet(web)
    tab = new_tab(locale="zh-CN")
    page = tab.open(web.url)
    page.wait_for_selector(ROWS)
    assert page.get_attribute("html", "lang") == "zh-Hans" and tab.text("#fleet-title") == "引擎"
    assert tab.text(f'tr[data-id="{HOST}/0"] .c-mode') == "预留"
    page.locator(f'tr[data-id="{HOST}/0"]').click()
    page.wait_for_selector(".headline")
    said = in_language(now(IDLE_L2, HOST), "zh")
    assert tab.text(".headline") == f"● {said.verdict.headline}" == "● L1 受限（预留），L2 空闲"
    assert page.locator(".because li").all_inner_texts() == list(said.verdict.because)
    assert "KV 空间在时间窗 100 % 的时间里不足" in tab.text(".because") and "(10 秒, 20 秒]" in tab.text(".because")
    assert all(part in tab.text(".remedies") for one in said.remedies for part in (one.action, one.flag, one.effect))
    assert page.locator(".not").all_inner_texts() == [f"无效：{one}" for one in said.not_remedies]
    assert "排队" in tab.text(".bars") and "检查清单" in tab.text("#checklist-title")


def test_the_switch_changes_everything_at_once_and_is_kept(web: Web, tab: Tab) -> None:
    fleet(web)
    page = tab.open(web.url + ENGINE, ".headline")
    assert tab.text("#checklist-title") == "Checklist"
    page.click("#language")
    tab.wait("document.documentElement.lang === 'zh-Hans'")
    assert tab.text("#checklist-title") == "检查清单"
    tab.wait("document.querySelector('.headline').textContent.startsWith('● L1 受限（预留）')")
    page.reload()
    page.wait_for_selector(".headline")
    assert page.get_attribute("html", "lang") == "zh-Hans"
    page.click("#language")
    tab.wait("document.documentElement.lang === 'en'")
    tab.wait("document.querySelector('.headline').textContent === '● L1-BOUND (reservation), L2 idle'")
    page.evaluate("location.hash = '#/'")
    tab.wait(f"""document.querySelector('tr[data-id="{HOST}/0"]')?.title.startsWith('L1-BOUND')""")


def test_every_word_exists_in_both_languages(web: Web, tab: Tab) -> None:
    page = tab.open(web.url)
    en, chinese = page.evaluate(
        "async () => [(await import('/static/js/i18n/en.js')).en, (await import('/static/js/i18n/zh.js')).zh]"
    )
    assert set(en) - set(chinese) == set()
    book = load([data_dir("rules")])
    findings = {f"f_{one.finding}" for one in book.checks if one.finding} | {f"f_{PARTIAL}", f"f_{FAILED}"}
    assert findings <= set(chinese), "a finding without a Chinese word"
    units = {f"unit_{one.unit}" for one in (*signals(), *intervals())} - {f"unit_{own}" for own in OWN_FORMAT}
    assert units <= set(chinese), "a unit without a Chinese word"
    modes = {f"m_{rule.mode}" for rule in book.verdicts if rule.mode}
    assert modes <= set(chinese), "a mode without a Chinese word"
    asked = page.eval_on_selector_all(
        "[data-t], [data-t-label], [data-t-placeholder]",
        "all => all.flatMap(one => [one.dataset.t, one.dataset.tLabel, one.dataset.tPlaceholder]).filter(Boolean)",
    )
    assert set(asked) <= set(en)
    for key, text in en.items():
        holes = {part.split("}")[0] for part in text.split("{")[1:]}
        assert {part.split("}")[0] for part in chinese[key].split("{")[1:]} == holes, key


ENGLISH = """
() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    const run = /(?<![\\w:=.-])[A-Za-z]{2,}(?: [A-Za-z]{2,}){2,}/.exec(node.textContent);
    if (run && parent.checkVisibility() && !parent.closest("code, pre, [lang=en]")) found.push(node.textContent);
  }
  return found;
}
"""
"""Texts that somebody sees with three English words in a row."""


@pytest.mark.parametrize(("name", "after"), [(BOUND, 60.0), (IDLE_L2, None), (HEALTHY, 0.0), (DEAD, None)])
def test_in_chinese_no_english_sentence_is_seen(
    web: Web, new_tab: Callable[..., Tab], name: str, after: float | None
) -> None:
    web.evaluated(now(name, HOST, after))
    tab = new_tab(locale="zh-CN")
    page = tab.open(web.url + ENGINE, ".headline")
    page.evaluate("for (const one of document.querySelectorAll('#engine details')) one.open = true")
    tab.wait("[...document.querySelectorAll('.explain dl')].every((one) => one.textContent)")
    assert len(page.locator(".checklist .check").all()) > 20 and page.locator(".explain dd[lang=en]").count() > 20
    assert page.evaluate(ENGLISH) == []


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_phone_needs_no_scrolling_sideways(web: Web, new_tab: Callable[..., Tab], locale: str) -> None:
    fleet(web)
    tab = new_tab(viewport={"width": 360, "height": 740}, locale=locale, is_mobile=True, has_touch=True)
    page = tab.open(web.url)
    page.wait_for_selector(ROWS)
    assert not tab.wide()
    assert page.locator(".c-waiting").first.is_visible() and page.locator(".c-since").first.is_visible()
    page.locator(f'tr[data-id="{HOST}/0"]').tap()
    page.wait_for_selector(".plot canvas")
    for fold in page.locator("#engine summary").all():
        if fold.is_visible():
            fold.evaluate("one => one.parentElement.open = true")
    assert not tab.wide()
    page.evaluate("location.hash = '#/'")
    page.wait_for_selector(LIVE)
    assert not tab.wide()
