"""A real Chromium before a real service."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from service.web_kit import Web, named, recorded, serve

from diagnoser.model import Diagnosis

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
ROWS = "table.fleet tbody tr"
LIVE = ".link.live"
GIVE_UP_SECONDS = 60.0


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, headless, with an empty profile."""
    binary = shutil.which("chromium")
    assert binary is not None, "the page is tested in Chromium: apt-get install -y --no-install-recommends chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def served(settings: Mapping[str, Any] | None = None, history: Path | None = None) -> Iterator[Web]:
    """`serve` in a thread of its own: Playwright has a running event loop in ours."""
    ready, done, found = threading.Event(), threading.Event(), list[Web]()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with serve(settings, history) as web:
                found.append(web)
                ready.set()
                done.wait()
        except BaseException as error:
            errors.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert ready.wait(GIVE_UP_SECONDS) and not errors, errors
        yield found[0]
    finally:
        done.set()
        thread.join()
    assert not errors, errors


class Tab:
    """A page and what it complained about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.tolerated: tuple[str, ...] = ()
        """What Chromium writes on the console by itself in this test, as for an answer that is no success."""
        self._errors: list[str] = []
        self.urls: list[str] = []
        page.set_default_timeout(GIVE_UP_SECONDS * 1000)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._errors.append(f"uncaught: {error}"))
        page.on("request", lambda request: self.urls.append(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._errors.append(f"{message.text} ({message.location.get('url', '')})")

    @property
    def errors(self) -> list[str]:
        return [one for one in self._errors if not any(name in one for name in self.tolerated)]

    def open(self, url: str, wait: str = LIVE) -> Page:
        self.page.goto(url)
        self.page.wait_for_selector(wait)
        return self.page

    def wait(self, expression: str) -> None:
        """Until it is true. (Playwright's own wait_for_function needs eval, which the page's policy forbids.)"""
        end = time.monotonic() + GIVE_UP_SECONDS
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, expression
            self.page.wait_for_timeout(50)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def rows(self) -> list[str]:
        """Ids of the rows, as they stand."""
        found: list[str] = self.page.eval_on_selector_all(ROWS, "rows => rows.map(row => row.dataset.id)")
        return found

    def wide(self) -> bool:
        """Can it be scrolled sideways?"""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))


def until(test: Callable[[], object], what: str = "") -> None:
    """Waits for a condition outside of the page."""
    end = time.monotonic() + GIVE_UP_SECONDS
    while not test():
        assert time.monotonic() < end, what or "it did not happen"
        time.sleep(0.05)


def now(name: str, target: str, after: float | None = None, rank: int = 0, ago: float = 0.0) -> Diagnosis:
    """A recorded diagnosis as if it were of this minute."""
    return named(recorded(name, after)[rank], target, time.time() - ago)
