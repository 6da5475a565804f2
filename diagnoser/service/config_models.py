"""The configuration file as values. What a key means is told in docs/service.md."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from diagnoser.engines.base import FACTS
from diagnoser.errors import FactsError, UsageError
from diagnoser.facts import facts_of
from diagnoser.model import Fact
from diagnoser.service.api.settings import WebSettings
from diagnoser.service.config_base import Bytes, FilePath, Seconds, Strict
from diagnoser.service.inbound_settings import WebhookSettings
from diagnoser.service.notify.settings import NotifySettings
from diagnoser.sources.base import MAX_PAGE_BYTES
from diagnoser.sources.http import normalise_url

Port = Annotated[int, Field(ge=1, le=65535)]


def typed_facts(given: Mapping[str, float | bool | str]) -> dict[str, Fact]:
    """Facts of the configuration. Raises FactsError for an unknown name."""
    found, _ = facts_of([], [f"{name}={value}" for name, value in given.items()], FACTS)
    return {name: replace(fact, origin="configuration") for name, fact in found.items()}


def _address(text: str) -> str:
    try:
        normalise_url(text)
    except UsageError as error:
        raise ValueError(str(error)) from None
    return text


class HttpSd(Strict):
    """A URL that answers with targets in Prometheus' format."""

    url: str
    refresh: Seconds = 30.0
    headers: dict[str, SecretStr] = {}
    bearer_file: FilePath | None = None

    @field_validator("url")
    @classmethod
    def _http(cls, value: str) -> str:
        if not re.match(r"https?://[^/]", value):
            raise ValueError("write a URL that begins with http:// or https://")
        return value


class DnsSd(Strict):
    """A name whose records are the engines."""

    name: str = Field(min_length=1)
    type: Literal["A", "AAAA", "SRV"] = "A"
    port: Port | None = None
    refresh: Seconds = 30.0
    servers: list[str] = []

    @field_validator("servers")
    @classmethod
    def _addresses(cls, value: list[str]) -> list[str]:
        for one in value:
            ipaddress.ip_address(one.rpartition("@")[0] or one)
        return value

    @model_validator(mode="after")
    def _needs_port(self) -> DnsSd:
        if self.type != "SRV" and self.port is None:
            raise ValueError(f"{self.type} records have no port: give `port`")
        return self


class PrometheusSource(Strict):
    """Engines as a Prometheus-compatible server has stored them."""

    url: str
    match: str = ""
    window: Seconds = 300.0
    interval: Seconds = 15.0
    delay: Seconds = 5.0
    timeout: Seconds = 30.0
    tenant: str = ""
    headers: dict[str, SecretStr] = {}
    bearer_file: FilePath | None = None
    ca: str = ""
    cert: str = ""
    key: str = ""


KINDS = ("static", "file_sd", "http_sd", "dns", "prometheus")


class TargetGroup(Strict):
    """One entry of `targets`: where addresses come from, and how they are polled."""

    static: list[str] | None = None
    file_sd: list[str] | None = None
    http_sd: HttpSd | None = None
    dns: DnsSd | None = None
    prometheus: PrometheusSource | None = None
    labels: dict[str, str] = {}
    interval: Seconds = 2.0
    timeout: Seconds = 5.0
    scheme: Literal["http", "https"] = "http"
    path: str = "/metrics"
    headers: dict[str, SecretStr] = {}
    bearer_file: FilePath | None = None
    max_page: Annotated[Bytes, Field(ge=1024, le=MAX_PAGE_BYTES)] = 4 * 2**20
    facts: dict[str, float | bool | str] = {}
    l2: list[str] = []

    @field_validator("static", "l2")
    @classmethod
    def _addresses(cls, value: list[str] | None) -> list[str] | None:
        for one in value or ():
            _address(one.rpartition("=")[2] if "://" not in one.partition("=")[0] else one)
        return value

    @field_validator("facts")
    @classmethod
    def _known_facts(cls, value: dict[str, float | bool | str]) -> dict[str, float | bool | str]:
        try:
            typed_facts(value)
        except FactsError as error:
            raise ValueError(str(error).removeprefix("--fact ")) from None
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> TargetGroup:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(f"needs exactly one of {', '.join(KINDS)}, not {found}")
        return self

    @property
    def kind(self) -> str:
        """Where the addresses come from."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)


class HistorySettings(Strict):
    """The history file; without `path` it is in memory."""

    path: FilePath | None = None
    retention: Seconds = 7 * 86400.0
    max_size: Annotated[Bytes, Field(ge=2**20)] = 2**30


class LogSettings(Strict):
    """Lines on stderr."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(Strict):
    """The whole file."""

    targets: list[TargetGroup] = []
    window: Seconds = 30.0
    keep: Seconds = 300.0
    evaluate_every: Seconds = 5.0
    polls_at_once: Annotated[int, Field(ge=1, le=10_000)] = 256
    stop_deadline: Seconds = 10.0
    rules: list[FilePath] = []
    history: HistorySettings = HistorySettings()
    web: WebSettings = WebSettings()
    notify: NotifySettings = NotifySettings()
    webhook: WebhookSettings = WebhookSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _fits(self) -> Config:
        for place, group in enumerate(self.targets):
            if group.kind != "prometheus" and 2 * group.interval > self.window:
                raise ValueError(
                    f"targets[{place}].interval: fewer than two pages, {group.interval:g} s apart, would fall into"
                    f" a window of {self.window:g} s"
                )
        return self
