"""Who is in the fleet: the labels of each engine, what it replays from when on, and with that the truth about it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from diagnoser.pipeline import wanted_metrics

from .footage import Footage
from .releases import stock
from .takes import phases

END = 1_795_976_100.0
"""When every fleet ends, unless asked otherwise: well inside one two-hour block of Prometheus."""
MODELS = {
    "vllm": ("llama-3.1-70b", "qwen3-32b", "mistral-small-24b", "gpt-oss-120b", "llama-3.1-8b"),
    "sglang": ("deepseek-v3", "qwen3-235b", "glm-4.5-air", "llama-4-scout"),
}
_PHASES, _AS_RECORDED, _ROOM = 8, 0.6, 1.0


@dataclass(frozen=True)
class Settings:
    """What makes a fleet; equal settings make equal fleets."""

    engines: int = 1000
    span: float = 360.0
    interval: float = 15.0
    bound: float = 0.05
    seed: int = 1
    end: float = END
    all_series: bool = False

    @property
    def scrapes(self) -> int:
        """Of each engine."""
        return round(self.span / self.interval)

    def data(self) -> dict[str, Any]:
        """For the file beside the data."""
        return asdict(self)


@dataclass(frozen=True)
class Member:
    """One engine: its labels, its footage, where it starts in it, and when it is scraped first."""

    labels: Mapping[str, str]
    model: str
    footage: Footage
    phase: float
    start: float

    @property
    def variant(self) -> tuple[str, str, str, float]:
        """Engines with the same one show the same values."""
        shown = self.footage
        return shown.name, shown.version, shown.series[0][0], self.phase

    @property
    def truth(self) -> dict[str, Any]:
        """One row of the truth file."""
        shown = self.footage
        known = {"family": shown.family, "version": shown.version, "recording": shown.name, "phase": self.phase}
        found = {"bound": shown.cause != "none", "cause": shown.cause, "refused": dict(shown.refused)}
        return {**self.labels, "model_name": self.model, **known, **found}


def members(settings: Settings) -> Iterator[Member]:
    """The fleet, one engine after the other. Those that are bound are spread evenly."""
    dice = random.Random(settings.seed)
    footage = stock(None if settings.all_series else wanted_metrics())
    bound = [takes for takes in footage if takes[0].cause != "none"]
    healthy = [takes for takes in footage if takes[0].cause == "none"]
    for i in range(settings.engines):
        is_bound = int((i + 1) * settings.bound) > int(i * settings.bound)
        shown, *older = dice.choice(bound if is_bound else healthy)
        if dice.random() > _AS_RECORDED:
            shown = dice.choice(older)
        yield _member(i, shown, settings, dice)


def _member(i: int, shown: Footage, settings: Settings, dice: random.Random) -> Member:
    model = dice.choice(MODELS[shown.family])
    labels = {
        "instance": f"10.{i // 62500}.{i // 250 % 250}.{i % 250 + 1}:8000",
        "job": shown.family,
        "pod": f"{model.replace('.', '-')}-{i:05}",
    }
    first = settings.end - settings.scrapes * settings.interval
    start = first + dice.uniform(0.05 * settings.interval, settings.interval - _ROOM)
    return Member(labels, model, shown, dice.choice(phases(shown, _PHASES)), round(start, 3))
