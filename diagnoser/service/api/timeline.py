"""What was: verdicts and signals over a range, and transitions."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import WithJsonSchema, model_validator

from diagnoser.language import told
from diagnoser.service.api import models, views
from diagnoser.service.api.engines import EngineId, Text
from diagnoser.service.api.languages import Asked, Heard
from diagnoser.service.api.problems import Problem
from diagnoser.service.board import Key
from diagnoser.service.history import KEY_SIGNALS

router = APIRouter(prefix="/api/v1", tags=["history"])
MAX_POINTS = 11_000
"""Points of one answer and series, as Prometheus limits a range query."""
MAX_SECONDS = 1e11
Time = Annotated[float, Query(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]


Signal = Annotated[Text, WithJsonSchema({"type": "string", "enum": list(KEY_SIGNALS)})]


class Range(Asked):
    """From when to when, in unix seconds. Default: the hour until now."""

    start: Time | None = None
    end: Time | None = None

    @property
    def until(self) -> float:
        """The end."""
        return time.time() if self.end is None else self.end

    @property
    def since(self) -> float:
        """The start."""
        return max(0.0, self.until - 3600.0) if self.start is None else self.start

    @model_validator(mode="after")
    def _forwards(self) -> Range:
        if self.start is not None and self.end is not None and self.start > self.end:
            raise ValueError("start lies after end")
        return self


class Steps(Range):
    """A range in steps."""

    step: Annotated[float | None, Query(ge=1, le=86400 * 366, description="Seconds; default: 300 points.")] = None

    @property
    def spans(self) -> tuple[float, float, float]:
        """start, end, step: a step that would make too many points is made larger."""
        start, end = self.since, self.until
        step = max(1.0, (end - start) / 300) if self.step is None else self.step
        return start, end, max(step, (end - start) / MAX_POINTS)


class VerdictSteps(Steps):
    """Whose verdicts."""

    engine: Annotated[Text | None, Query(description="id of one engine; default: all.")] = None


class SignalSteps(Steps):
    """Which signals."""

    signal: list[Signal] = list(KEY_SIGNALS)


class TransitionRange(Range):
    """Which transitions."""

    engine: Annotated[Text | None, Query(description="id of one engine; default: all.")] = None
    after: Annotated[int, Query(ge=0, le=2**62, description="Only ids above this one.")] = 0
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000


@router.get("/history/verdicts", summary="Verdicts over a range")
async def verdicts(
    request: Request, wanted: Annotated[VerdictSteps, Query()], language: Heard
) -> models.VerdictHistory:
    """The worst verdict of each engine in each step that has one."""
    service, (start, end, step) = views.service_of(request), wanted.spans
    key = None if wanted.engine is None else Key.parse(wanted.engine)
    points = await service.history.verdicts(key, start, end, step)
    found = [
        models.VerdictPoint.model_validate(
            {
                "id": one.key.id, "at": one.at, "bottleneck": one.bottleneck, "mode": one.mode,
                "severity": one.severity, "confidence": one.confidence, "l2": one.l2,
                "headline": told(one.headline, language),
            }
        )
        for one in points
    ]  # fmt: skip
    return models.VerdictHistory(start=start, end=end, step=step, points=found)


def check_kept(names: Iterable[str]) -> None:
    """Problem 404 for a signal that is not kept."""
    unknown = [name for name in names if name not in KEY_SIGNALS]
    if unknown:
        kept = ", ".join(KEY_SIGNALS)
        raise Problem(404, f"The history does not keep {unknown[0]!r}; it keeps {kept}.", "no-such-signal")


@router.get("/engines/{engine:path}/signals", summary="Signals of one engine over a range")
async def signals(request: Request, engine: EngineId, wanted: Annotated[SignalSteps, Query()]) -> models.SignalHistory:
    """Their mean in each step; those that are kept are few, and the default is all of them."""
    service, (start, end, step) = views.service_of(request), wanted.spans
    check_kept(wanted.signal)
    key = Key.parse(engine)
    found = await service.history.signals(key, list(dict.fromkeys(wanted.signal)), start, end, step)
    if service.board.get(key) is None and not any(found.values()):
        raise Problem(404, f"No engine {engine!r} is watched or was in that time.", "no-such-engine")
    shown = {name: [[at, views.number(value)] for at, value in points] for name, points in found.items()}
    return models.SignalHistory(id=key.id, start=start, end=end, step=step, signals=shown)


@router.get("/transitions", summary="Changes of verdict")
async def transitions(
    request: Request, wanted: Annotated[TransitionRange, Query()], language: Heard
) -> models.Transitions:
    """In the order they happened. With `after` and no `start`: everything since that id."""
    service = views.service_of(request)
    key = None if wanted.engine is None else Key.parse(wanted.engine)
    start = 0.0 if wanted.after and wanted.start is None else wanted.since
    found = await service.history.transitions(start, wanted.until, key, wanted.after, wanted.limit)
    newest = max((one.id for one in found), default=wanted.after)
    return models.Transitions(transitions=[views.transition(one, language) for one in found], next=newest)
