"""Signed webhooks, checked with the code that the documentation gives to receivers."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import ssl
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from diagnoser.errors import UsageError
from diagnoser.service.notify.base import Outcome
from diagnoser.service.notify.http import retry_after

from .alert_kit import Receiver, item, receiver, webhook

DOCS = Path(__file__).parents[2] / "docs" / "alerting.md"
Verify = Callable[..., bool]


@pytest.fixture(scope="module")
def verified() -> Verify:
    """The sample code of docs/alerting.md."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Verify] = {}
    exec(code, names)
    return names["verified"]


def delivered(url: str, **settings: object) -> Outcome:
    """One message, directly."""

    async def work() -> Outcome:
        hook = webhook("hook", url, **settings)  # type: ignore[arg-type]
        try:
            return await hook.deliver(item("a"))
        finally:
            await hook.close()

    return asyncio.run(work())


def got(hook: Receiver) -> tuple[Mapping[str, str], bytes]:
    request = hook.arrived.get(timeout=10)
    return request.headers, request.body


def test_the_signature_is_what_the_documentation_says(verified: Verify, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("# new, then old\nzwei\neins\n")
    with receiver() as hook:
        assert delivered(hook.url, secret_file=secret).accepted
        headers, body = got(hook)
    assert verified(headers, body, "eins")
    assert verified(headers, body, "zwei")
    assert not verified(headers, body, "drei")
    assert not verified(headers, body + b" ", "eins")
    assert not verified({**headers, "X-Diagnoser-Timestamp": "1795900000"}, body, "eins", now=1795900000)
    assert not verified(headers, body, "eins", now=int(headers["X-Diagnoser-Timestamp"]) + 301)


def test_a_changed_secret_is_used_without_a_reload(verified: Verify, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("eins")

    async def work(hook: Receiver) -> None:
        made = webhook("hook", hook.url, secret_file=secret)
        await made.deliver(item("a"))
        secret.write_text("zwei")
        await made.deliver(item("b"))
        secret.unlink()
        outcome = await made.deliver(item("c"))
        assert (outcome.accepted, outcome.retry) == (False, True)
        assert outcome.reason == f"the file {secret} cannot be read as text (FileNotFoundError)."
        await made.close()

    with receiver() as hook:
        asyncio.run(work(hook))
        assert verified(*got(hook), "eins")
        assert verified(*got(hook), "zwei")
        assert hook.arrived.empty()


def test_the_body_holds_words_and_fields() -> None:
    with receiver() as hook:
        delivered(hook.url, headers={"X-Team": "chat"})
        request = hook.arrived.get(timeout=10)
    assert request.headers["X-Team"] == "chat"
    assert "X-Diagnoser-Signature" not in request.headers
    body = request.json
    assert (body["schema_version"], body["id"], body["kind"]) == (1, "a", "alerts")
    assert body["title"] == "[critical] L1-BOUND (preempting), L2 idle · llama-3-70b · 10.0.3.7:8000"
    (event,) = body["events"]
    assert (event["kind"], event["bottleneck"], event["mode"]) == ("firing", "l1", "preempting")
    assert event["remedy"]["flag"].startswith("--max-num-queued-reqs N")
    assert event["numbers"]["waiting_max_requests"] == 41


def test_no_secret_is_logged_or_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret, url = tmp_path / "secret", tmp_path / "url"
    secret.write_text("sehr-geheim")
    with receiver((500, {}), (404, {})) as hook:
        url.write_text(f"{hook.url}/services/T0KEN")
        for _ in "12":
            outcome = delivered(None, url_file=url, secret_file=secret)  # type: ignore[arg-type]
            assert "T0KEN" not in outcome.reason
        assert hook.arrived.get(timeout=10).path == "/services/T0KEN"
    url.write_text("http://127.0.0.1:9/services/T0KEN")
    assert "T0KEN" not in delivered(None, url_file=url, secret_file=secret).reason  # type: ignore[arg-type]
    assert "T0KEN" not in caplog.text
    assert "sehr-geheim" not in caplog.text
    assert logging.getLogger("httpx").level == logging.WARNING


def test_a_secret_that_is_not_there_is_an_error_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"the file .*none cannot be read as text \(FileNotFoundError\)"):
        webhook("hook", "http://127.0.0.1:9", secret_file=tmp_path / "none")
    with pytest.raises(UsageError, match="the environment variable HOOK_SECRET is empty"):
        webhook("hook", "http://127.0.0.1:9", secret_env="HOOK_SECRET")
    monkeypatch.setenv("HOOK_SECRET", "eins")
    asyncio.run(webhook("hook", "http://127.0.0.1:9", secret_env="HOOK_SECRET").close())


@pytest.mark.parametrize("text", ["slack://a/b", "http://", "http://user:T0KEN@host/", "T0KEN"])
def test_a_url_that_is_none_is_refused_without_repeating_it(text: str, tmp_path: Path) -> None:
    url = tmp_path / "url"
    url.write_text(text)
    with pytest.raises(UsageError, match="holds no address that begins with http:// or https://") as caught:
        delivered(None, url_file=url)  # type: ignore[arg-type]
    assert "T0KEN" not in str(caught.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody else trusts, with its key."""
    tool = shutil.which("openssl")
    assert tool, "openssl is missing: apt-get install -y --no-install-recommends openssl"
    folder = tmp_path_factory.mktemp("tls")
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    words += ["-addext", "keyUsage=critical,keyCertSign,digitalSignature"]
    subprocess.run([tool, *words], cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem"


def test_a_certificate_is_checked_and_a_ca_of_ones_own_is_trusted(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with receiver(tls=context) as hook:
        refused = delivered(hook.url)
        assert (refused.accepted, refused.retry) == (False, True)
        assert refused.reason == "the connection failed (ConnectError)"
        assert delivered(hook.url, ca_file=certificate).accepted
    with pytest.raises(UsageError, match=r"ca_file .*none cannot be read"):
        delivered(hook.url, ca_file=certificate.with_name("none"))


def test_retry_after_in_seconds_and_as_a_date() -> None:
    assert retry_after("120", 0.0) == 120
    assert retry_after("Sun, 29 Nov 2026 22:00:30 GMT", 1795989600.0) == 30
    assert retry_after("Sun, 29 Nov 2026 21:00:00 GMT", 1795989600.0) == 0
    assert retry_after("999999999", 0.0) == 86400
    assert retry_after("soon", 0.0) is None
    assert retry_after("", 0.0) is None
