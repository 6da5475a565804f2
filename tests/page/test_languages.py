"""English and Chinese, and the width of a phone."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from service.web_kit import BOUND, HEALTHY, IDLE_L2, TWO_RANKS, Web

from diagnoser.data import data_dir
from diagnoser.rulebook.load import load
from diagnoser.service.notify import zh
from page.kit import LIVE, ROWS, Tab, now

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
    assert tab.text(".headline") == "● " + zh.HEADLINES["l1_reservation"].format(l2=zh.L2["idle_space"])
    assert zh.REMEDIES["lower_reservation"] in tab.text(".remedies")
    assert zh.FLAGS["lower_reservation"]["sglang"] in tab.text(".remedies")
    assert "KV 空间在时间窗 100 % 的时间里不足" in tab.text(".because >> nth=0")
    assert "TTFT P99 在 (10 秒, 20 秒]" in tab.text(".because >> nth=0")
    assert "排队" in tab.text(".bars") and "检查清单" in tab.text("#checklist-title")


def test_the_switch_changes_everything_at_once_and_is_kept(web: Web, tab: Tab) -> None:
    fleet(web)
    page = tab.open(web.url + ENGINE, ".headline")
    assert tab.text("#checklist-title") == "Checklist"
    page.click("#language")
    tab.wait("document.documentElement.lang === 'zh-Hans'")
    assert tab.text("#checklist-title") == "检查清单" and tab.text(".headline").startswith("● L1 受限（预留）")
    page.reload()
    page.wait_for_selector(".headline")
    assert page.get_attribute("html", "lang") == "zh-Hans"
    page.click("#language")
    tab.wait("document.documentElement.lang === 'en'")
    assert tab.text(".headline") == "● L1-BOUND (reservation), L2 idle"


def test_every_word_exists_in_both_languages(web: Web, tab: Tab) -> None:
    page = tab.open(web.url)
    en, chinese = page.evaluate(
        "async () => [(await import('/static/js/i18n/en.js')).en, (await import('/static/js/i18n/zh.js')).zh]"
    )
    assert set(en) - set(chinese) == set()
    book = load([data_dir("rules")])
    assert {f"check_{one.id}" for one in book.checks} <= set(chinese), "a check without a Chinese label"
    effects = {f"{kind}_{name}" for name in book.remedies for kind in ("effect", "side")}
    assert effects <= set(chinese), "a remedy without Chinese effects"
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
