"""What the sections `notify:` and `webhook:` of the configuration hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from diagnoser.service.config_base import FilePath, Seconds, Strict

Language = Literal["en", "zh"]
Severity = Literal["info", "warning", "critical"]
SILENCE_LABELS = "target, rank, model, family, bottleneck, mode, severity, or a label of the target"

_RATE = re.compile(r"([0-9]+)/(s|m|h|d)")
_PER = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Rate(Strict):
    """So many messages in so many seconds."""

    count: Annotated[int, Field(gt=0)]
    seconds: Annotated[float, Field(gt=0)]


def _rate(value: Any) -> Any:
    if isinstance(value, Rate):
        return value
    match = _RATE.fullmatch(value.replace(" ", "")) if isinstance(value, str) else None
    if match is None or not int(match[1]):
        raise ValueError("write a rate such as 20/h, 5/m or 100/d")
    return Rate(count=int(match[1]), seconds=_PER[match[2]])


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/@]+(:[0-9]+)?(/\S*)?", value):
        raise ValueError("write http://HOST[:PORT][/PATH] or https://..., without a name or password in it")
    return value.rstrip("/")


def _moment(value: Any) -> float | None:
    """Unix seconds of ISO 8601, a YAML timestamp, or seconds. Without a zone it is UTC."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise ValueError("write a time such as 2026-11-29T22:00:00Z, or unix seconds") from None
    return (found if found.tzinfo else datetime.fromisoformat(f"{found.isoformat()}+00:00")).timestamp()


def _match(value: dict[str, str]) -> dict[str, str]:
    if not value:
        raise ValueError(f'say what is silenced ({SILENCE_LABELS}); {{target: "*"}} is everything')
    return value


RateText = Annotated[Rate, BeforeValidator(_rate)]
Url = Annotated[str, AfterValidator(_url)]
Moment = Annotated[float | None, BeforeValidator(_moment)]
Match = Annotated[dict[str, str], AfterValidator(_match)]


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret is named, never written down: a file that holds it, or a variable of the environment."""

    file: Path | None
    env: str | None


def _secret(model: Strict, name: str, needed: bool = False) -> Secret | None:
    file, env = getattr(model, f"{name}_file"), getattr(model, f"{name}_env")
    if file is not None and env is not None:
        raise ValueError(f"give {name}_file or {name}_env, not both")
    if needed and file is None and env is None:
        raise ValueError(f"give {name}_file (a path) or {name}_env (a variable of the environment)")
    return None if file is None and env is None else Secret(file, env)


class AlertmanagerSettings(Strict):
    """An Alertmanager; of a cluster, every member is a receiver of its own, as with Prometheus."""

    url: Url
    bearer_file: FilePath | None = None
    bearer_env: str | None = None
    basic_file: FilePath | None = None
    """Holds user:password."""
    basic_env: str | None = None
    tenant: str | None = None
    """X-Scope-OrgID, for Mimir's Alertmanager."""
    ca_file: FilePath | None = None
    """Certificates to trust besides those of the system."""
    resend_every: Seconds = 60.0
    """An alert that lasts is sent again so often; Alertmanager forgets it after four times that."""
    timeout: Seconds = 10.0

    @model_validator(mode="after")
    def _one(self) -> AlertmanagerSettings:
        if self.bearer is not None and self.basic is not None:
            raise ValueError("give a bearer token or a user with password, not both")
        return self

    @property
    def bearer(self) -> Secret | None:
        """Where the token is."""
        return _secret(self, "bearer")

    @property
    def basic(self) -> Secret | None:
        """Where user:password is."""
        return _secret(self, "basic")


class WebhookTarget(Strict):
    """Anything that takes JSON. With a secret every request is signed (docs/alerting.md)."""

    url: Url | None = None
    url_file: FilePath | None = None
    """Where the URL itself is a secret."""
    url_env: str | None = None
    secret_file: FilePath | None = None
    """Each line signs, so that a new secret can be introduced before the old one goes."""
    secret_env: str | None = None
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    ca_file: FilePath | None = None
    """Certificates to trust besides those of the system."""
    timeout: Seconds = 10.0

    @model_validator(mode="after")
    def _one(self) -> WebhookTarget:
        if self.url is not None and (self.url_file is not None or self.url_env is not None):
            raise ValueError("give url, url_file or url_env, not two of them")
        _secret(self, "url", needed=self.url is None)
        _secret(self, "secret")
        return self

    @property
    def secret_url(self) -> Secret | None:
        """Where the URL is, if `url` does not hold it."""
        return _secret(self, "url")

    @property
    def secret(self) -> Secret | None:
        """Where the signing secrets are."""
        return _secret(self, "secret")


class AppriseSettings(Strict):
    """Chat, paging or mail through Apprise: slack://, msteams://, pagerduty://, feishu://, dingtalk://, wecombot://,
    mailto://, and about 130 more. The URL holds a secret, so it is read from a file or the environment.
    """

    url_file: FilePath | None = None
    url_env: str | None = None
    timeout: Seconds = 30.0

    @model_validator(mode="after")
    def _one(self) -> AppriseSettings:
        _secret(self, "url", needed=True)
        return self

    @property
    def url(self) -> Secret:
        """Where the URL is."""
        return Secret(self.url_file, self.url_env)


class Receiver(Strict):
    """Who is told. Exactly one of `alertmanager`, `webhook`, `apprise`."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    alertmanager: AlertmanagerSettings | None = None
    webhook: WebhookTarget | None = None
    apprise: AppriseSettings | None = None
    language: Language | None = None
    """Of this receiver; else `notify.language`."""
    rate_limit: RateText | None = None
    """Of this receiver; else `notify.rate_limit.per_receiver`, but an Alertmanager has none."""
    send_resolved: bool = True

    @model_validator(mode="after")
    def _one_kind(self) -> Receiver:
        if sum(kind is not None for kind in (self.alertmanager, self.webhook, self.apprise)) != 1:
            raise ValueError("give exactly one of alertmanager, webhook, apprise")
        return self


class Route(Strict):
    """Which verdicts go where. A receiver is told if any of its routes wants it; its first one sets the times."""

    receivers: Annotated[tuple[str, ...], Field(min_length=1)]
    min_severity: Severity = "warning"
    models: tuple[str, ...] = ()
    """Globs; empty is every model."""
    targets: tuple[str, ...] = ()
    bottlenecks: tuple[str, ...] = ()
    """l1, slots, unreachable, ...; empty is all but none."""
    match: dict[str, str] = Field(default_factory=dict)
    """Globs for labels of the target."""
    hold: Annotated[Seconds, Field(alias="for")] = 60.0
    """A verdict that does not last so long is told to nobody."""
    resolve_after: Seconds | None = None
    """How long it must be gone before it counts as over; else as long as `for`."""
    group_by: tuple[str, ...] = ("model",)
    """Labels: what agrees in them within `group_wait` is one message. Empty: one message an engine rank, at once."""
    group_wait: Seconds = 10.0


class SilenceSettings(Strict):
    """Maintenance: nothing new is sent of what matches, but all of it is kept."""

    match: Match
    starts_at: Annotated[Moment, Field(alias="from")] = None
    ends_at: Annotated[Moment, Field(alias="until")] = None
    comment: str = ""


class RateLimits(Strict):
    """What is above the limit is merged into one message, never dropped."""

    per_receiver: RateText = Rate(count=20, seconds=3600.0)


class NotifySettings(Strict):
    """Outgoing alerts."""

    language: Language = "en"
    external_url: Url | None = None
    """How people reach this service: links in messages begin with it."""
    runbook_url: str = ""
    """Of a verdict, with {rule}, {bottleneck} and {mode}; empty: this service's page of it."""
    receivers: tuple[Receiver, ...] = ()
    routes: tuple[Route, ...] = ()
    silences: tuple[SilenceSettings, ...] = ()
    rate_limit: RateLimits = RateLimits()

    @model_validator(mode="after")
    def _names(self) -> NotifySettings:
        names = [receiver.name for receiver in self.receivers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two receivers are named {twice[0]}")
        for route in self.routes:
            for name in route.receivers:
                if name not in names:
                    raise ValueError(f"a route names the receiver {name}, which is not among: {', '.join(names)}")
        return self


def _regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"{value!r} is no regular expression: {error}") from None
    return value


class Relabel(Strict):
    """One rule in the terms of Prometheus' relabel_config."""

    source_labels: tuple[str, ...] = ()
    separator: str = ";"
    regex: Annotated[str, AfterValidator(_regex)] = "(.*)"
    target_label: str = ""
    replacement: str = "$1"
    action: Literal["replace", "keep", "drop"] = "replace"

    @model_validator(mode="after")
    def _whole(self) -> Relabel:
        if self.action == "replace" and not self.target_label:
            raise ValueError("action replace needs target_label")
        return self


class WebhookSettings(Strict):
    """Incoming alerts of an Alertmanager: how their labels name engines, and who gets the verdict."""

    relabel: tuple[Relabel, ...] = ()
    """Applied in order, before the defaults (instance -> target, model_name -> model, engine or dp_rank -> rank)."""
    defaults: bool = True
    window: Seconds = 300.0
    """What is looked at begins so long before the alert did."""
    forward: tuple[str, ...] = ()
    """Receivers that get the verdict as a message."""
    max_engines: Annotated[int, Field(gt=0)] = 20
    """An alert that names more engines than that is diagnosed for the worst ones."""
