"""What the section `notify:` of the configuration holds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, model_validator

from diagnoser.language import Language
from diagnoser.service.config_base import FilePath, Seconds, Strict
from diagnoser.service.notify.fields import Match, Moment, Rate, RateText, Secret, Url, named_secret

Severity = Literal["info", "warning", "critical"]


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
        return named_secret(self, "bearer")

    @property
    def basic(self) -> Secret | None:
        """Where user:password is."""
        return named_secret(self, "basic")


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
        named_secret(self, "url", needed=self.url is None)
        named_secret(self, "secret")
        return self

    @property
    def secret_url(self) -> Secret | None:
        """Where the URL is, if `url` does not hold it."""
        return named_secret(self, "url")

    @property
    def secret(self) -> Secret | None:
        """Where the signing secrets are."""
        return named_secret(self, "secret")


class AppriseSettings(Strict):
    """Chat, paging or mail through Apprise: slack://, msteams://, pagerduty://, feishu://, dingtalk://, wecombot://,
    mailto://, and about 130 more. The URL holds a secret, so it is read from a file or the environment.
    """

    url_file: FilePath | None = None
    url_env: str | None = None
    timeout: Seconds = 30.0

    @model_validator(mode="after")
    def _one(self) -> AppriseSettings:
        named_secret(self, "url", needed=True)
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
