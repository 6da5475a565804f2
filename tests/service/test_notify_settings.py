"""What `notify:` and `webhook:` take and refuse, also as docs/alerting.md shows them; reloading; what logs may hold."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from diagnoser.errors import UsageError
from diagnoser.service.alerting import Alerting, check
from diagnoser.service.inbound_settings import WebhookSettings
from diagnoser.service.notify.fields import Rate
from diagnoser.service.notify.settings import NotifySettings
from diagnoser.service.notify.silences import NewSilence

from .alert_kit import Engines, item, notify, opened, receiver, until

DOCS = Path(__file__).parents[2] / "docs" / "alerting.md"
HOOK = {"name": "hook", "webhook": {"url": "http://127.0.0.1:9"}}


def documented() -> list[dict[str, Any]]:
    """The YAML blocks that are ours; the other one is Alertmanager's."""
    blocks = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    return [found for found in map(yaml.safe_load, blocks) if "receivers" not in found]


def test_the_documentation_shows_what_is_taken() -> None:
    blocks = documented()
    assert len(blocks) == 2
    for block in blocks:
        WebhookSettings.model_validate(block["webhook"])
    settings = NotifySettings.model_validate(blocks[0]["notify"])
    assert [one.name for one in settings.receivers] == ["am", "hook", "oncall", "chat"]
    assert (settings.routes[1].hold, settings.routes[2].group_wait) == (120.0, 30.0)
    assert settings.silences[0].starts_at == 1795989600.0
    assert settings.rate_limit.per_receiver == Rate(count=20, seconds=3600.0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"receivers": [{"name": "x"}]}, "give exactly one of alertmanager, webhook, apprise"),
        ({"receivers": [HOOK, HOOK]}, "two receivers are named hook"),
        (
            {"receivers": [HOOK], "routes": [{"receivers": ["hoook"]}]},
            "names the receiver hoook, which is not among: hook",
        ),
        ({"receivers": [{"name": "@webhook", "webhook": {"url": "http://x"}}]}, "pattern"),
        ({"receivers": [{"name": "x", "webhook": {}}]}, r"give url_file \(a path\) or url_env"),
        ({"receivers": [{"name": "x", "webhook": {"url": "http://x", "url_env": "X"}}]}, "not two of them"),
        ({"receivers": [{"name": "x", "apprise": {"url": "slack://T0KEN"}}]}, "Extra inputs are not permitted"),
        ({"receivers": [{"name": "x", "apprise": {}}]}, "give url_file"),
        (
            {"receivers": [{"name": "x", "apprise": {"url_file": "a", "url_env": "B"}}]},
            "give url_file or url_env, not both",
        ),
        ({"receivers": [{"name": "x", "alertmanager": {"url": "http://user:T0KEN@x"}}]}, "without a name or password"),
        ({"receivers": [{"name": "x", "alertmanager": {"url": "am:9093"}}]}, "write http://HOST"),
        (
            {"receivers": [{"name": "x", "alertmanager": {"url": "http://x", "bearer_env": "A", "basic_env": "B"}}]},
            "not both",
        ),
        ({"receivers": [HOOK], "routes": [{"receivers": []}]}, "at least 1 item"),
        ({"receivers": [HOOK], "routes": [{"receivers": ["hook"], "for": "soon"}]}, "is no duration"),
        ({"rate_limit": {"per_receiver": "often"}}, "write a rate such as 20/h"),
        ({"silences": [{"match": {}}]}, "say what is silenced"),
        ({"silences": [{"match": {"target": "*"}, "until": "tomorrow"}]}, "write a time such as"),
        ({"language": "fr"}, "'en' or 'zh'"),
        ({"reciever": []}, "Extra inputs are not permitted"),
    ],
)
def test_what_is_refused_says_why_without_secrets(wrong: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said) as caught:
        notify(**wrong)
    assert "T0KEN" not in str(caught.value)


def test_a_silence_at_run_time_must_end() -> None:
    for wrong in ({"match": {"target": "*"}}, {"match": {"target": "*"}, "until": 5, "from": 10}):
        with pytest.raises(ValidationError):
            NewSilence.model_validate(wrong)


def test_a_reload_that_cannot_work_changes_nothing(tmp_path: Path) -> None:
    async def work(hook: Any) -> None:
        good = notify(receivers=[{"name": "hook", "webhook": {"url": hook.url}}])
        async with opened() as history:
            made = await Alerting.open(good, WebhookSettings(), history, Engines(), "http://d")
            running = asyncio.create_task(made.run())
            bad = notify(receivers=[{"name": "hook", "webhook": {"url_file": str(tmp_path / "none")}}])
            with pytest.raises(UsageError, match=r"receiver hook: the file .*none cannot be read"):
                await made.use(bad, WebhookSettings(), "http://d")
            await made.outbox.add([item("a")])
            assert (await hook.next()).headers["Idempotency-Key"] == "a"
            await made.use(notify(receivers=[{**HOOK, "name": "new"}]), WebhookSettings(), "http://d")
            await made.outbox.add([item("b", "new")])
            await until(lambda: made.problems())
            assert made.problems() == ("the receiver new fails: the connection failed (ConnectError)",)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await made.close()

    with receiver() as hook:
        asyncio.run(work(hook))


def test_the_check_of_a_configuration_reads_secrets_and_asks_apprise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = notify(receivers=[{"name": "chat", "apprise": {"url_env": "CHAT_URL"}}])
    with pytest.raises(UsageError, match="receiver chat: the environment variable CHAT_URL is empty"):
        check(settings, WebhookSettings())
    monkeypatch.setenv("CHAT_URL", "slackk://T0KEN")
    with pytest.raises(UsageError, match=r"Apprise does not understand its URL \(slackk\)"):
        check(settings, WebhookSettings())
    monkeypatch.setenv("CHAT_URL", "json://127.0.0.1/T0KEN")
    check(settings, WebhookSettings())
