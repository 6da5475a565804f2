"""The configuration: did the last reload work, and reload now."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from diagnoser.service.api import models, views
from diagnoser.service.api.problems import Problem

router = APIRouter(prefix="/api/v1/config", tags=["service"])
CONFLICT: dict[int | str, dict[str, Any]] = {409: {"description": "Not taken over; the old one stays. Why: `detail`."}}


class ConfigStatus(models.Model):
    """The configuration in use. Its contents are not shown: it may name secrets."""

    path: str | None
    loaded_at: float
    ok: bool
    reason: str
    attempted_at: float | None
    sources: list[dict[str, Any]]


def _status(request: Request) -> ConfigStatus:
    service = views.service_of(request)
    last = service.last_reload
    sources = [
        {"name": source.name, "kind": source.kind, "targets": source.targets, "problem": source.problem}
        for source in service.sources()
    ]
    return ConfigStatus(
        path=None if service.path is None else str(service.path),
        loaded_at=service.reloaded_at,
        ok=last is None or last.ok,
        reason="" if last is None else last.reason,
        attempted_at=None if last is None else last.at or None,
        sources=sources,
    )


@router.get("/status", summary="Last reload, and the sources of targets")
async def status(request: Request) -> ConfigStatus:
    """Whether the file was taken over, and where targets come from."""
    return _status(request)


@router.post("/reload", summary="Read the file again", responses=CONFLICT)
async def reload(request: Request) -> ConfigStatus:
    """All of it or nothing: on any mistake the old configuration stays, and the answer says what is wrong."""
    result = await views.service_of(request).reload()
    if not result.ok:
        raise Problem(409, result.reason or "The configuration was not taken over.", "config-rejected")
    return _status(request)
