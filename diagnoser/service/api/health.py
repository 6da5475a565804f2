"""/healthz, /readyz, /metrics and the state of the service itself."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from diagnoser import __version__
from diagnoser.language import told
from diagnoser.service.api import models, views
from diagnoser.service.api.languages import Spoken
from diagnoser.service.api.problems import Problem

Page = Callable[[], tuple[bytes, str]]
router = APIRouter(tags=["service"])
TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text format."}
}


@router.get("/healthz", summary="Alive?")
async def healthz() -> models.Health:
    """200 as long as the process answers."""
    return models.Health(status="ok")


@router.get("/readyz", summary="Has evaluated?", responses={503: {"description": "Not yet."}})
async def readyz(request: Request) -> models.Health:
    """200 once the targets were evaluated for the first time, 503 before."""
    if not views.service_of(request).ready:
        raise Problem(503, "Nothing was evaluated yet: it takes one window.", "not-ready", {"Retry-After": "5"})
    return models.Health(status="ok")


@router.get("/metrics", summary="Own metrics", response_class=Response, responses=TEXT)
async def metrics(request: Request) -> Response:
    """All of the service and its verdicts for Prometheus; docs/api.md lists the names."""
    page = request.app.state.metrics.snapshot(request.headers.get("accept", ""))
    packed = "gzip" in request.headers.get("accept-encoding", "")
    body, media_type = await run_in_threadpool(_packed if packed else _plain, page)
    coding = {"Content-Encoding": "gzip"} if packed else {}
    return Response(body, headers={"Content-Type": media_type, "Vary": "Accept, Accept-Encoding", **coding})


def _plain(page: Page) -> tuple[bytes, str]:
    return page()


def _packed(page: Page) -> tuple[bytes, str]:
    """The page of a fleet has megabytes, and a twentieth of that in gzip."""
    body, media_type = page()
    return gzip.compress(body, 1), media_type


@router.get("/api/v1/status", summary="The service itself")
async def status(request: Request, language: Spoken) -> models.Status:
    """Version, targets, history, notifications, configuration, and what is wrong with any of them."""
    service = views.service_of(request)
    targets = service.targets()
    return models.Status(
        version=__version__,
        started_at=service.started_at,
        cursor=views.cursor(service),
        engines=len(service.board.entries()),
        by_bottleneck=dict(Counter(entry.diagnosis.verdict.bottleneck for entry in service.board.entries())),
        targets=len(targets),
        targets_failing=sum(target.healthy is False for target in targets),
        last_evaluation_at=service.stats.last_evaluation_at,
        history={"healthy": service.history.healthy, "problem": service.history.problem},
        notifications=_notifications(request),
        config=_config(request),
        problems=[told(problem, language) for problem in _problems(request)],
    )


def _notifications(request: Request) -> dict[str, Any]:
    alerting = views.service_of(request).alerting
    return {} if alerting is None else {"pending": alerting.outbox.depth, "dead": alerting.outbox.dead}


def _config(request: Request) -> dict[str, Any]:
    last = views.service_of(request).last_reload
    return {} if last is None else {"ok": last.ok, "reason": last.reason, "at": last.at}


def _problems(request: Request) -> list[str]:
    service = views.service_of(request)
    last, tokens, alerting = service.last_reload, request.app.state.guard.tokens, service.alerting
    found = [
        service.history.problem,
        "" if last is None or last.ok else f"The configuration was not taken over: {last.reason}",
        "" if tokens is None else tokens.problem,
        *(source.problem for source in service.sources()),
        *(() if alerting is None else alerting.problems()),
    ]
    return [problem for problem in found if problem]
