"""Chat through the real Apprise: to a real server by its json:// scheme, and the URLs of the services that we name."""

from __future__ import annotations

import asyncio
import email
import logging
import queue
import re
import socketserver
import threading
from email import policy
from pathlib import Path

import pytest

from diagnoser.errors import UsageError
from diagnoser.language import Language
from diagnoser.service.notify.base import Outcome
from diagnoser.service.notify.chat import Chat
from diagnoser.service.notify.event import Message
from diagnoser.service.notify.settings import AppriseSettings
from diagnoser.service.records import OutboxItem

from .alert_kit import START, Receiver, event, item, opened, receiver, resolved, running, until, webhook

DOCS = Path(__file__).parents[2] / "docs" / "alerting.md"


def chat(url: str, folder: Path, language: Language = "en", timeout: float = 30.0) -> Chat:
    """A receiver with its URL in a file."""
    place = folder / "chat.url"
    place.write_text(f"# kept out of the configuration\n{url}\n")
    return Chat("chat", AppriseSettings(url_file=place, timeout=timeout), language, None)


def address(hook: Receiver, scheme: str = "json", more: str = "") -> str:
    return f"{hook.url.replace('http', scheme, 1)}/T0KEN{more}"


def told(made: Chat, message: Message | None = None, attempts: int = 1) -> Outcome:
    payload = item("a").payload if message is None else message.to_json()
    return asyncio.run(made.deliver(OutboxItem("a", "chat", "alerts", payload, START, START, attempts)))


def test_title_text_and_colour_arrive(tmp_path: Path) -> None:
    with receiver() as hook:
        assert told(chat(address(hook), tmp_path)).accepted
        body = hook.arrived.get(timeout=10).json
        assert body["title"] == "[critical] L1-BOUND (preempting), L2 idle · llama-3-70b · 10.0.3.7:8000"
        assert (
            body["message"].splitlines()[1]
            == "Do: Shed or cap arrivals now: --max-num-queued-reqs N (from 0.29), or a limit at the gateway"
        )
        assert body["type"] == "failure"
        over, warning = Message("x", (resolved(event()),)), Message("x", (event(severity="warning"),))
        assert [told(chat(address(hook), tmp_path), one).accepted for one in (over, warning)] == [True, True]
        assert [hook.arrived.get(timeout=10).json["type"] for _ in "12"] == ["success", "warning"]


def test_chinese_arrives_whole(tmp_path: Path) -> None:
    with receiver() as hook:
        assert told(chat(address(hook, "xml"), tmp_path, "zh"), attempts=2).accepted
        body = hook.arrived.get(timeout=10).body.decode()
    assert "[严重] L1 受限（抢占），L2 空闲 · llama-3-70b · 10.0.3.7:8000（第 2 次发送，可能重复）" in body


class Mail(socketserver.StreamRequestHandler):
    """Just enough of SMTP to be given a mail."""

    def handle(self) -> None:
        self.wfile.write(b"220 test\r\n")
        for line in iter(self.rfile.readline, b""):
            word = line.strip().upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.mails.put(b"".join(lines))  # type: ignore[attr-defined]
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")
            if word == b"QUIT":
                return


def test_a_mail_arrives(tmp_path: Path) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail) as server:
        server.mails = queue.Queue()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        port = server.server_address[1]
        url = f"mailto://127.0.0.1:{port}?from=diagnoser@example.com&to=oncall@example.com&mode=insecure"
        assert told(chat(url, tmp_path, "zh")).accepted
        mail = email.message_from_bytes(server.mails.get(timeout=10), policy=policy.default)  # type: ignore[attr-defined]
        server.shutdown()
    assert mail["Subject"] == "[严重] L1 受限（抢占），L2 空闲 · llama-3-70b · 10.0.3.7:8000"
    body = mail.get_body()  # type: ignore[attr-defined]
    lines = re.split(r"<br ?/>|\n", body.get_content())
    assert "处理：立即限流，减少新到请求：--max-num-queued-reqs N（0.29 起），或在网关限流" in [
        line.strip() for line in lines
    ]


@pytest.mark.parametrize(
    ("status", "retry"), [(500, True), (503, True), (429, True), (400, False), (403, False), (404, False)]
)
def test_a_refusal_is_final_only_if_the_status_says_so(status: int, retry: bool, tmp_path: Path) -> None:
    with receiver((status, {})) as hook:
        outcome = told(chat(address(hook), tmp_path))
    assert (outcome.accepted, outcome.retry) == (False, retry)
    assert outcome.reason == f"it answered {status} (Apprise)"


def test_nobody_there_is_tried_again(tmp_path: Path) -> None:
    outcome = told(chat("json://127.0.0.1:9/T0KEN", tmp_path))
    assert (outcome.accepted, outcome.retry) == (False, True)
    assert "T0KEN" not in outcome.reason


def test_a_service_that_hangs_delays_nobody_and_is_not_asked_twice_at_once(tmp_path: Path) -> None:
    async def work(slow: Receiver, fast: Receiver) -> None:
        made = chat(address(slow, more="?rto=60&cto=60"), tmp_path, timeout=0.5)
        async with opened() as history, running(history, made, webhook("hook", fast.url)) as outbox:
            await outbox.add([item("a", "chat")])
            await slow.next()
            await outbox.add([item("b")])
            await fast.next()
            await until(lambda: "the attempt before this one still hangs" in " ".join(outbox.problems()))
            assert slow.arrived.empty()
            slow.over.set()
            await slow.next()

            async def both_done() -> bool:
                return {one.id for one in await history.outbox_list("done", 10)} == {"a", "b"}

            await until(both_done)

    with receiver("hang") as slow, receiver() as fast:
        asyncio.run(work(slow, fast))


def filled(url: str) -> str:
    """The example of the documentation with plausible values."""
    values = {
        "TOKEN_A": "T1JJ3T3L2",
        "TOKEN_B": "A1BRTD4JD",
        "TOKEN_C": "TIiajkdnlazkcOXrIdevi7FQ",
        "HOST": "prod-1.westeurope.logic.azure.com",
        "WORKFLOW": "3e197e1d9f7f4ea1a8e3f0a5d5b5a6c7",
        "SIGNATURE": "dGhpc2lzbm90YXJlYWxzaWduYXR1cmU",
        "INTEGRATION_KEY": "a1b2c3d4e5f60718293a4b5c6d7e8f90",
        "API_KEY": "u+abcdefghijklmnopqr",
        "BOT_KEY": "693a91f6-7xxx-4bc4-97a0-0ec2sifa5aaa",
        "SECRET": "SEC0123456789abcdef",
        "TOKEN": "0123456789abcdef0123456789abcdef",
        "USER": "diagnoser",
        "PASSWORD": "pw",
    }
    return re.sub("|".join(sorted(values, key=len, reverse=True)), lambda match: values[match[0]], url)


def documented() -> dict[str, str]:
    rows = re.findall(r"^\| ([^|]+) \| `([a-z]+://[^`]+)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    return {service: filled(url) for service, url in rows}


def test_the_documentation_names_all_seven() -> None:
    assert set(documented()) == {"Slack", "Microsoft Teams", "PagerDuty", "Feishu", "DingTalk", "WeCom", "mail"}


@pytest.mark.parametrize("service", sorted(documented()))
def test_apprise_understands_the_url_of(service: str, tmp_path: Path) -> None:
    (found,) = chat(documented()[service], tmp_path)._service()
    expected = {
        "Microsoft Teams": "Power Automate",
        "mail": "E-Mail",
        "WeCom": "WeCom Bot",
        "PagerDuty": "Pager Duty",
    }.get(service, service)
    assert expected.lower() in str(found.service_name).lower()


def test_a_url_that_apprise_does_not_know_is_refused_without_repeating_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Apprise does not understand its URL \(nonsense\)") as caught:
        chat("nonsense://T0KEN", tmp_path)
    assert "T0KEN" not in str(caught.value)
    with pytest.raises(UsageError, match="one URL a receiver, not 2"):
        chat("json://a/T0KEN\njson://b/T0KEN", tmp_path)


def test_apprise_logs_no_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with receiver((403, {})) as hook:
        told(chat(address(hook), tmp_path))
    assert "T0KEN" not in caplog.text
