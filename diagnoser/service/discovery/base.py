"""What a source of addresses is, and Prometheus' format of lists of targets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import yaml

from diagnoser.errors import DiagnoserError, UsageError
from diagnoser.service.config_models import TargetGroup
from diagnoser.sources.http import Address, normalise_url

MAX_TARGETS = 20_000


class DiscoveryError(DiagnoserError):
    """A source gave no usable list this time; its last good one stands, or `partial` where only a part is bad."""

    partial: Sequence[Found] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One address as its source wrote it, with the labels it gave."""

    address: str
    labels: Mapping[str, str] = field(default_factory=dict)


class Source(Protocol):
    """Something that knows addresses."""

    @property
    def name(self) -> str:
        """As people are shown it: "static", "file_sd targets/*.json"."""

    @property
    def every(self) -> float:
        """Seconds between two refreshes; infinite if it never changes."""

    async def refresh(self) -> Sequence[Found] | None:
        """All addresses now; None if nothing has changed since the last time. Raises DiscoveryError."""


def target_groups(text: str, where: str) -> list[Found]:
    """A list in Prometheus' format: [{"targets": ["host:port"], "labels": {"team": "chat"}}], JSON or YAML."""
    try:
        data = json.loads(text) if text.lstrip()[:1] in ("[", "{") else yaml.load(text, _Loader)
    except (ValueError, yaml.YAMLError, RecursionError):
        try:
            data = yaml.load(text, _Loader)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise DiscoveryError(f"{where}: neither JSON nor YAML ({str(error).splitlines()[0]})") from None
    if not isinstance(data, list):
        raise DiscoveryError(f"{where}: must be a list of `targets` with `labels`")
    found = [one for place, group in enumerate(data) for one in _group(group, f"{where}: entry {place}")]
    if len(found) > MAX_TARGETS:
        raise DiscoveryError(f"{where}: {len(found)} targets, more than {MAX_TARGETS}")
    return found


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _group(group: Any, where: str) -> list[Found]:
    if not isinstance(group, dict) or not isinstance(group.get("targets"), list):
        raise DiscoveryError(f"{where} must have a list `targets`")
    unknown = sorted(set(map(str, group)) - {"targets", "labels"})
    if unknown:
        raise DiscoveryError(f"{where} has the unknown key {unknown[0]!r}")
    labels = group.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(key, str) for key in labels):
        raise DiscoveryError(f"{where}: `labels` must be names with values")
    if not all(isinstance(address, str) for address in group["targets"]):
        raise DiscoveryError(f"{where}: every target must be a text such as 10.0.3.7:8000")
    read = {key: str(value) for key, value in labels.items()}
    return [Found(address, read) for address in group["targets"]]


def address_of(found: Found, group: TargetGroup) -> Address:
    """The URL to poll: the address with the group's scheme and path, unless it or its labels have their own."""
    text = found.address.strip()
    if "://" not in text:
        scheme = found.labels.get("__scheme__", group.scheme)
        path = found.labels.get("__metrics_path__", group.path)
        text = f"{scheme}://{text}" if "/" in text else f"{scheme}://{text}/{path.lstrip('/')}"
    try:
        return normalise_url(text)
    except UsageError as error:
        raise DiscoveryError(str(error)) from None


def public_labels(found: Found, group: TargetGroup) -> dict[str, str]:
    """The group's labels and the target's own on top; those that begin with __ are not for people."""
    both = {**group.labels, **found.labels}
    return {key: value for key, value in both.items() if not key.startswith("__")}
