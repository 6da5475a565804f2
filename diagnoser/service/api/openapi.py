"""The description of the API, completed: errors, security, the output contract's schema."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from diagnoser import __version__
from diagnoser.outputs.contract import SCHEMA
from diagnoser.service.api import models, problems
from diagnoser.service.api.security import scope_of

URL = "/api/v1/openapi.json"
DESCRIPTION = """\
What keeps requests waiting in each vLLM or SGLang engine that this service watches.

Every error is a problem document (RFC 9457). Where the service has tokens, send `Authorization: Bearer TOKEN`; each
operation names the scope it needs. Every operation may answer 429 with Retry-After.
"""
TAGS = [
    {"name": "engines", "description": "Engines and their verdicts as they are now."},
    {"name": "history", "description": "What was."},
    {"name": "rules", "description": "What the words mean."},
    {"name": "diagnose", "description": "On request."},
    {"name": "alerting", "description": "Alertmanager's alerts in, notifications out, silences."},
    {"name": "grafana", "description": "Flat rows for Grafana's Infinity data source."},
    {"name": "service", "description": "The service itself."},
]
ALWAYS = {403: "Not allowed: a missing scope, a foreign Host or Origin.", 429: "Too many requests.", 500: "A bug."}


def describe(app: FastAPI) -> None:
    """Gives the app its description."""
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    """Made once; security is in it only while there are tokens."""
    secured = app.state.guard.tokens is not None
    document = app.openapi_schema
    if document is None or ("securitySchemes" in document["components"]) != secured:
        document = app.openapi_schema = _made(app, secured)
    return document


def _made(app: FastAPI, secured: bool) -> dict[str, Any]:
    document = get_openapi(
        title="l1-diagnoser", version=__version__, description=DESCRIPTION, routes=app.routes, tags=TAGS
    )
    components = document["components"]
    for gone in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(gone, None)
    components["schemas"] |= {**_contract(), "ProblemDocument": models.ProblemDocument.model_json_schema()}
    if secured:
        scheme = {"type": "http", "scheme": "bearer", "description": "`diagnose token new` makes one."}
        components["securitySchemes"] = {"token": scheme}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _complete(path, method.upper(), operation, secured)
    return document


def _complete(path: str, method: str, operation: dict[str, Any], secured: bool) -> None:
    """Errors that any operation may answer with, and what a token must be good for."""
    needed, answers = scope_of(method, path), operation["responses"]
    said = dict(ALWAYS)
    if "requestBody" in operation:
        said |= {400: "Not readable.", 408: "The body stopped coming.", 413: "Too large."}
    if "{" in path:
        said[404] = "There is no such thing."
    if needed is not None:
        operation["description"] = f"{operation.get('description', '')}\n\nScope: {needed}.".strip()
    if needed is not None and secured:
        said[401] = "No token, or one that is not valid."
        operation["security"] = [{"token": []}]
    if "422" in answers or "requestBody" in operation:
        said[422] = "Not valid: `errors` tells where."
    for status, words in said.items():
        answers.setdefault(str(status), {"description": words})
    for status, answer in answers.items():
        if int(status) >= 400:
            reference = {"$ref": "#/components/schemas/ProblemDocument"}
            answer["content"] = {problems.MEDIA_TYPE: {"schema": reference}}


@cache
def _contract() -> dict[str, Any]:
    """The schema of the package as components: diagnosis -> Diagnosis, the others with a prefix."""
    defs = json.loads(SCHEMA.read_text())["$defs"]
    names = {name: "Diagnosis" if name == "diagnosis" else f"Diagnosis_{name}" for name in defs if name != "report"}
    text = json.dumps({names[name]: schema for name, schema in defs.items() if name in names})
    for name, component in names.items():
        text = text.replace(f'"#/$defs/{name}"', f'"#/components/schemas/{component}"')
    found: dict[str, Any] = json.loads(text)
    return found
