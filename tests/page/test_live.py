"""The page before `diagnose serve` itself: engines that change, a service that goes and comes back, tokens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
from service.poll_kit import HEALTHY as CALM
from service.poll_kit import PREEMPTING, address, engine, sends, site
from service.web_kit import BOUND, HEALTHY, Web

from bench.fleet.process import free_port
from diagnoser.service.api.tokens import hash_of, new_token
from page.kit import GIVE_UP_SECONDS, LIVE, ROWS, Tab, now, served, until

REFUSED = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE")
"""What Chromium itself writes on the console while nobody answers; no page can prevent it."""


@contextmanager
def service(port: int, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """`diagnose serve` as a process."""
    command = [sys.executable, "-m", "diagnoser", "serve", "--listen", f"127.0.0.1:{port}", "--interval", "200ms",
               "--window", "5s", "--evaluate-every", "500ms", "--log-level", "warning", *words]  # fmt: skip
    process = subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        until(lambda: process.poll() is not None or ready(port), "the service does not get ready")
        assert process.poll() is None
        yield process
    finally:
        process.kill()
        process.wait()


def ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def test_a_live_engine_becomes_bound_before_the_readers_eyes(tab: Tab) -> None:
    """One address: first a recording of a busy engine, then one of a bound engine."""
    tab.tolerated = REFUSED
    with engine(CALM, speed=4.0) as calm, engine(PREEMPTING, speed=4.0) as bound:
        played = [calm]

        def handle(request: BaseHTTPRequestHandler) -> None:
            answer = httpx.get(played[-1].url, trust_env=False)
            sends(answer.content, answer.status_code)(request)

        with site(handle) as target, service(port := free_port(), target):
            page = tab.open(f"http://127.0.0.1:{port}")
            row = f'tr[data-id="{target}/0"]'
            page.wait_for_selector(f"{row}.u0")
            played.append(bound)
            tab.wait(f"document.querySelector('{row} .c-verdict').textContent === '● L1'")
            tab.wait("document.querySelector('#changes').textContent.includes('→ L1')")
            page.locator(row).click()
            page.wait_for_selector("#engine .plot canvas")
            page.wait_for_selector("#engine .changes li")


def test_the_service_restarts_and_the_page_lives_on_without_a_reload(tab: Tab, tmp_path: Path) -> None:
    tab.tolerated = REFUSED
    port = free_port()
    words = ("--data", str(tmp_path))
    with engine(speed=1.0) as mock, engine(CALM, speed=1.0) as calm:
        with service(port, address(mock), *words):
            page = tab.open(f"http://127.0.0.1:{port}")
            page.wait_for_selector(ROWS)
            page.evaluate("window.mark = 1")
        page.wait_for_selector(".link.lost")
        tab.wait("/data is .+ old/.test(document.getElementById('link-age').textContent)")
        assert tab.text("#link-text").startswith("connection lost") and page.locator(ROWS).count() == 1
        assert page.locator("body.stale").count() == 1 and page.locator("#retry").is_visible()
        tab.wait("/next try in \\d+ s|trying/.test(document.getElementById('link-age').textContent)")
        with service(port, address(mock), address(calm), *words):
            page.wait_for_selector(LIVE)
            page.wait_for_selector(f'tr[data-id="{address(calm)}/0"]')
            assert page.evaluate("window.mark") == 1 and page.locator("body.stale").count() == 0
            page.locator(f'tr[data-id="{address(mock)}/0"]').click()
            page.wait_for_selector(".headline")
    asked = [url for url in tab.urls if url.endswith("/api/v1/events")]
    assert 2 <= len(asked) < 40, "it backs off"


def test_try_now_does_not_wait(tab: Tab) -> None:
    tab.tolerated = REFUSED
    port = free_port()
    with engine(speed=1.0) as mock:
        with service(port, address(mock)):
            page = tab.open(f"http://127.0.0.1:{port}")
        page.wait_for_selector(".link.lost")
        with service(port, address(mock)):
            tab.wait("document.getElementById('retry').hidden || (document.getElementById('retry').click(), false)")
            page.wait_for_selector(LIVE)


# ---------------------------------------------------------------- tokens


def tokens_file(folder: Path, *scopes: str) -> tuple[Path, list[str]]:
    made = [new_token() for _ in scopes]
    lines = [
        f"  - {{name: t{n}, hash: '{hash_of(token)}', scopes: [{scope}]}}"
        for n, (token, scope) in enumerate(zip(made, scopes, strict=True))
    ]
    path = folder / "tokens.yaml"
    path.write_text("tokens:\n" + "\n".join(lines) + "\n")
    path.chmod(0o600)
    return path, made


def kept(tab: Tab) -> tuple[dict[str, str], dict[str, str], str]:
    found = tab.page.evaluate("[{...sessionStorage}, {...localStorage}, document.cookie + location.href]")
    return found[0], found[1], found[2]


REFUSALS = ("status of 401", "status of 403")


def test_a_token_is_asked_for_and_stays_in_the_tab(tmp_path: Path, new_tab: Callable[..., Tab]) -> None:
    path, (reader, hook) = tokens_file(tmp_path, "read", "webhook")
    with served({"tokens_file": str(path)}) as web:
        web.evaluated(now(BOUND, "10.0.3.7:8000", 60))
        tab = new_tab()
        tab.tolerated = REFUSALS
        page = tab.open(web.url, "dialog[open]")
        assert page.evaluate("document.activeElement.id") == "token-value"
        assert "scope read" in tab.text("#token-why")
        for wrong, said in (("nonsense", "not valid"), (hook, "lacks the scope")):
            page.fill("#token-value", wrong)
            page.keyboard.press("Enter")
            tab.wait(f"document.getElementById('token-why').textContent.includes({json.dumps(said)})")
            page.wait_for_selector("dialog[open]")
        page.fill("#token-value", f" {reader} ")
        page.keyboard.press("Enter")
        page.wait_for_selector(ROWS)
        session, local, rest = kept(tab)
        assert session == {"diagnoser.token": reader} and reader not in json.dumps(local) + rest
        assert not any(reader in url for url in tab.urls)
        page.reload()
        page.wait_for_selector(ROWS)
        page.locator(ROWS).click()
        page.wait_for_selector(".headline")
        page.click("#forget")
        page.wait_for_selector("dialog[open]")
        assert kept(tab)[0] == {}


def test_a_token_that_is_taken_away_ends_the_view(tmp_path: Path, tab: Tab) -> None:
    tab.tolerated = REFUSALS
    path, (reader,) = tokens_file(tmp_path, "read")
    with served({"tokens_file": str(path)}) as web:
        web.evaluated(now(BOUND, "10.0.3.7:8000", 60))
        page = tab.open(web.url, "dialog[open]")
        page.fill("#token-value", reader)
        page.keyboard.press("Enter")
        page.wait_for_selector(ROWS)
        path.write_text("tokens: []\n")
        end = time.monotonic() + GIVE_UP_SECONDS
        while not page.locator("dialog[open]").count():  # the stream ends with the next thing it says
            assert time.monotonic() < end
            web.evaluated(now(HEALTHY, "10.0.3.7:8000"), now(BOUND, "10.0.3.8:8000", 60))
            web.evaluated(now(BOUND, "10.0.3.7:8000", 60))
            page.wait_for_timeout(200)
        assert kept(tab)[0] == {}


# ---------------------------------------------------------------- the stream


def test_events_are_read_however_the_bytes_are_cut(web: Web, tab: Tab) -> None:
    text = 'retry: 2000\n\nevent: fleet\nid: a.1.2\ndata: {"a":\ndata: 1}\n\n: still here\n\n'
    text += "event: x\r\ndata:2\r\n\r\ndata: no end"
    page = tab.open(web.url)
    for size in (1, 2, 3, 7, 1000):
        found = page.evaluate(
            "async ([text, size]) => { const { Parser } = await import('/static/js/sse.js'); const told = [];"
            " const parser = new Parser((...one) => told.push(one), () => told.push('comment'));"
            " for (let at = 0; at < text.length; at += size) parser.feed(text.slice(at, at + size)); return told; }",
            [text, size],
        )
        assert found == [["fleet", '{"a":\n1}', "a.1.2"], "comment", ["x", "2", "a.1.2"]], size
