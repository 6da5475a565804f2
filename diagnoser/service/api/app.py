"""The application: all routers, one guard around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI

from diagnoser.service.api import (
    alerting,
    config,
    diagnose,
    engines,
    events,
    grafana,
    health,
    openapi,
    page,
    problems,
    rules,
    strict,
    timeline,
)
from diagnoser.service.api.jobs import Jobs
from diagnoser.service.api.languages import LanguageLayer
from diagnoser.service.api.security import Guard, GuardLayer
from diagnoser.service.api.sse import Events
from diagnoser.service.metrics import Metrics

if TYPE_CHECKING:
    from diagnoser.service.service import Service

ROUTERS = (health, timeline, engines, events, rules, diagnose, alerting, config, grafana, page)
"""timeline before engines: /engines/{engine}/signals must not be taken for an engine."""


def create_app(service: Service) -> FastAPI:
    """The application for a service. Starts nothing. UsageError if the tokens cannot be read."""
    app = FastAPI(
        docs_url=None, redoc_url=None, openapi_url=openapi.URL, lifespan=_lifespan, redirect_slashes=False,
        dependencies=[Depends(strict.once), Depends(strict.sound)],
    )  # fmt: skip
    app.state.service, app.state.jobs = service, Jobs()
    app.state.events = Events(service)
    app.state.metrics = Metrics(service, app.state.events)
    app.state.guard = Guard(service.config.web, app.state.metrics.observe)
    for module in ROUTERS:
        app.include_router(module.router)
    problems.install(app, lambda path: strict.methods(app, path))
    openapi.describe(app)
    app.add_middleware(LanguageLayer)
    app.add_middleware(GuardLayer, guard=app.state.guard)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    await app.state.events.start()
    try:
        yield
    finally:
        await app.state.events.close()
