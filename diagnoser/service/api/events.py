"""GET /api/v1/events."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from diagnoser.service.api import sse
from diagnoser.service.api.engines import Filter
from diagnoser.service.api.languages import Heard

router = APIRouter(prefix="/api/v1", tags=["engines"])
EXAMPLE = (
    "event: fleet\nid: 5f3a9c1e.412.97\n"
    'data: {"cursor": "5f3a9c1e.412", "complete": true, "ids": [], "engines": []}\n\n'
)
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
    }
}


class Wanted(Filter):
    """The same filter, and how long."""

    seconds: Annotated[float | None, Query(gt=0, le=86400, description="End the stream after that time.")] = None


@router.get("/events", summary="Live verdicts (server-sent events)", response_class=Response, responses=STREAM)
async def events(
    request: Request,
    wanted: Annotated[Wanted, Query()],
    language: Heard,
    last_event_id: Annotated[str, Header(max_length=60)] = "",
) -> sse.EventResponse:
    """First `fleet` (as GET /engines), then `verdict` for an engine that changed, `removed` for one that is gone, and
    `transition`. With `Last-Event-ID` only what was missed. A comment every 15 s shows that the stream lives.
    """
    state = request.app.state
    return sse.respond(state.events, state.guard, wanted, last_event_id, wanted.seconds, language)
