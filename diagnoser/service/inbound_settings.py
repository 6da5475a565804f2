"""What the section `webhook:` of the configuration holds."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from diagnoser.service.config_base import Seconds, Strict


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
