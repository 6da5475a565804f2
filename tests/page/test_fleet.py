"""The fleet: worst first, live, filtered, by keyboard, and with ten thousand engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from service.web_kit import BOUND, HEALTHY, IDLE_L2, Web

from diagnoser.model import Diagnosis
from page.kit import LIVE, ROWS, Tab, now

ONE, CALM, HOST = "10.0.3.7:8000", "10.0.3.8:30000", "10.0.3.9:30000"


def three() -> list[Diagnosis]:
    return [now(BOUND, ONE, 60), now(HEALTHY, CALM), now(IDLE_L2, HOST)]


def cell(tab: Tab, target: str, name: str) -> str:
    return tab.text(f'tr[data-id="{target}/0"] .c-{name}')


def test_the_table_has_the_worst_first_and_asks_nobody_else(web: Web, tab: Tab) -> None:
    web.evaluated(*three())
    tab.open(web.url)
    tab.page.wait_for_selector(ROWS)
    assert tab.rows() == web.json("/api/v1/engines")["ids"]
    assert tab.rows()[-1] == f"{CALM}/0"
    heads = tab.page.locator("thead th").all_inner_texts()
    assert heads == [
        "Engine", "Bottleneck", "Mode", "L2", "Closed", "Trend", "Waiting", "Used", "TTFT P99", "Since",
    ]  # fmt: skip
    assert cell(tab, HOST, "verdict") == "● L1" and cell(tab, HOST, "mode") == "reservation"
    assert cell(tab, HOST, "l2") == "idle" and cell(tab, HOST, "closed") == "100 %"
    assert cell(tab, HOST, "trend") == "↑ rising" and cell(tab, HOST, "waiting") == "37"
    assert cell(tab, HOST, "used").strip() == "68..76 %" and cell(tab, HOST, "ttft") == "(10, 20] s"
    assert cell(tab, CALM, "verdict") == "✓ none"
    assert tab.page.title() == "(2) diagnose"
    assert all(url.startswith(web.url) for url in tab.urls)


def test_a_change_of_verdict_is_shown_said_and_listed_without_a_reload(web: Web, tab: Tab) -> None:
    web.evaluated(*three())
    page = tab.open(web.url)
    page.wait_for_selector(f'tr[data-id="{ONE}/0"].u4')
    page.evaluate("window.mark = 1")
    web.evaluated(now(HEALTHY, ONE))
    page.wait_for_selector(f'tr[data-id="{ONE}/0"].u0')
    tab.wait("document.getElementById('announce').textContent.includes('10.0.3.7:8000')")
    assert cell(tab, ONE, "verdict") == "✓ none" and tab.rows()[0] == f"{HOST}/0"
    assert "→ none" in page.locator("#changes li").first.inner_text()
    assert page.get_attribute("#announce", "aria-live") == "polite" and page.evaluate("window.mark") == 1


def test_an_engine_that_is_gone_leaves_the_table(web: Web, tab: Tab) -> None:
    web.evaluated(*three())
    tab.open(web.url)
    tab.wait("document.querySelectorAll('tbody tr').length === 3")

    async def drop() -> None:
        web.world.board.drop([entry.key for entry in web.world.board.entries() if entry.key.target == ONE])

    web.do(drop())
    tab.wait("document.querySelectorAll('tbody tr').length === 2")
    assert f"{ONE}/0" not in tab.rows()


def test_filters_by_bottleneck_model_and_words(web: Web, tab: Tab) -> None:
    web.evaluated(*three())
    page = tab.open(web.url)
    page.wait_for_selector(ROWS)
    page.get_by_role("button", name="2 L1").click()
    tab.wait("document.querySelectorAll('tbody tr').length === 2")
    assert tab.text("#shown") == "2 of 3" and page.locator(".chip.b-l1").get_attribute("aria-pressed") == "true"
    page.fill("#search", "RESERVATION sglang")
    tab.wait("document.querySelectorAll('tbody tr').length === 1")
    page.select_option("#model", "tiny")
    page.wait_for_selector("text=Nothing matches.")
    page.select_option("#model", "")
    page.fill("#search", "")
    page.get_by_role("button", name="2 L1").click()
    tab.wait("document.querySelectorAll('tbody tr').length === 3")


def test_nothing_yet_is_said(web: Web, tab: Tab) -> None:
    tab.open(web.url)
    tab.page.wait_for_selector("text=No engine has been evaluated yet.")


def test_by_keyboard_to_an_engine_and_back(web: Web, tab: Tab) -> None:
    web.evaluated(*three())
    page = tab.open(web.url)
    page.wait_for_selector(ROWS)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('tbody tr')"):
            break
    first, second, third = tab.rows()
    assert page.evaluate("document.activeElement.dataset.id") == first
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.id") == second != third
    web.evaluated(now(HEALTHY, second.removesuffix("/0")))
    page.wait_for_selector(f'tr[data-id="{second}"].u0')
    assert page.evaluate("document.activeElement.dataset.id") == second, "the focus is lost when rows change places"
    page.keyboard.press("Enter")
    tab.wait("document.activeElement.id === 'engine-title'")
    page.wait_for_selector(".headline")
    assert second.removesuffix("/0") in tab.text("#engine-title")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(ROWS)
    assert page.evaluate("document.activeElement.dataset.id") == second


def test_landmarks_and_names(web: Web, tab: Tab) -> None:
    web.evaluated(*three())
    page = tab.open(web.url)
    page.wait_for_selector(ROWS)
    for role in ("banner", "main", "contentinfo", "search"):
        assert page.get_by_role(role).count() == 1, role
    assert page.get_by_role("table", name="Engines").count() == 1
    assert page.get_by_role("row").count() == 4 and page.get_by_role("columnheader").count() == 10
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, select, input, a")].filter(one => one.checkVisibility() &&
        !(one.textContent.trim() || one.ariaLabel || one.labels?.[0]?.textContent.trim())).map(one => one.outerHTML)"""
    )
    assert nameless == []


def test_names_from_the_network_are_text(web: Web, tab: Tab) -> None:
    evil = '<img src=x onerror="window.evil=1"><script>window.evil=2</script>'
    one = now(BOUND, "10.0.3.7:8000", 60)
    verdict = replace(one.verdict, headline=evil, because=(evil,), mode=evil)
    web.evaluated(replace(one, engine=replace(one.engine, model=evil, version=evil, target=evil), verdict=verdict))
    page = tab.open(web.url)
    page.wait_for_selector(ROWS)
    assert evil in tab.text(ROWS)
    page.locator(ROWS).click()
    page.wait_for_selector(".headline")
    assert evil in tab.text(".headline") and evil in tab.text(".because") and evil in tab.text("#engine-title")
    page.wait_for_selector("#engine .changes li")
    assert page.evaluate("[window.evil, document.querySelectorAll('main img, main script').length]") == [None, 0]


def test_ten_thousand_engines_stay_usable(web: Web, tab: Tab) -> None:
    healthy, bound = now(HEALTHY, "x"), now(BOUND, "y", 60)
    many = [
        replace(kind, engine=replace(kind.engine, target=f"10.{n // 256}.{n % 256}.1:8000"))
        for n in range(10_000)
        for kind in [bound if n % 20 == 0 else healthy]
    ]
    web.evaluated(*many)
    page = tab.open(web.url)
    page.wait_for_selector(ROWS)
    assert tab.text("#shown") == "10,000 engines" and page.locator(ROWS).count() == 100
    assert tab.rows() == web.json("/api/v1/engines")["ids"][:100]
    assert tab.text("#more") == "Show 100 more (9,900 are not shown)"
    page.click("#more")
    tab.wait("document.querySelectorAll('tbody tr').length === 200")
    assert page.evaluate("document.activeElement === document.querySelectorAll('tbody tr')[100]")
    page.fill("#search", "10.39.15.1:8000")
    tab.wait("document.querySelectorAll('tbody tr').length === 1")
    web.evaluated(replace(bound, engine=replace(bound.engine, target="10.39.15.1:8000")))
    page.wait_for_selector('tr[data-id="10.39.15.1:8000/0"].u4')
    assert tab.text(".chip.b-l1") == "501 L1"


def test_light_and_dark_follow_the_system_until_somebody_chooses(web: Web, new_tab: Callable[..., Tab]) -> None:
    web.evaluated(*three())
    tab = new_tab(color_scheme="dark")
    page = tab.open(web.url)
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(paper)
    page.emulate_media(color_scheme="light")
    tab.wait("document.documentElement.dataset.theme === 'light'")
    light = page.evaluate(paper)
    assert light != dark
    page.select_option("#theme", "dark")
    assert page.evaluate(paper) == dark
    page.reload()
    page.wait_for_selector(LIVE)
    assert page.evaluate(paper) == dark and page.input_value("#theme") == "dark"


def test_contrast_of_text_is_enough_in_both_colours(web: Web, new_tab: Callable[..., Tab]) -> None:
    """WCAG AA: 4.5 to 1 for every text that the page's colours are used for."""
    web.evaluated(*three())
    for scheme in ("light", "dark"):
        page = new_tab(color_scheme=scheme).open(web.url)
        found = page.evaluate(
            """() => {
              const style = getComputedStyle(document.documentElement);
              const light = (name) => {
                const text = style.getPropertyValue(name).trim().slice(1);
                const full = text.length === 3 ? [...text].map((one) => one + one).join("") : text;
                const [r, g, b] = [0, 2, 4].map((at) => parseInt(full.slice(at, at + 2), 16) / 255)
                  .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
              };
              const ratio = (...two) => {
                const [dark, bright] = two.map(light).sort((a, b) => a - b);
                return (bright + 0.05) / (dark + 0.05);
              };
              const pairs = [["--ink", "--card"], ["--soft", "--card"], ["--soft", "--paper"], ["--link", "--paper"]];
              for (const n of [0, 1, 2, 3, 4]) pairs.push([`--u${n}`, "--card"], [`--u${n}`, `--u${n}-back`]);
              for (const n of [0, 1, 2, 3, 4]) pairs.push(["--soft", `--u${n}-back`]);
              return pairs.filter(([a, b]) => ratio(a, b) < 4.5).map(([a, b]) => [a, b, ratio(a, b)]);
            }"""
        )
        assert found == [], scheme
