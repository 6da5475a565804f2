"""One Chromium a module (its event loop is in the way of other tests), one tab a test; a tab must not complain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser
from service.web_kit import Web

from page.kit import Tab, chromium, served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def web() -> Iterator[Web]:
    with served() as found:
        yield found


@pytest.fixture
def new_tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Makes tabs with an empty profile: `new_tab(locale="zh-CN")`. They must stay without errors."""
    tabs: list[Tab] = []

    def make(**options: Any) -> Tab:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-US", **options})
        tabs.append(Tab(context.new_page()))
        return tabs[-1]

    yield make
    for tab in tabs:
        tab.page.context.close()
    assert [tab.errors for tab in tabs] == [[] for _ in tabs]


@pytest.fixture
def tab(new_tab: Callable[..., Tab]) -> Tab:
    return new_tab()
