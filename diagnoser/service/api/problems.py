"""Errors as RFC 9457 problem documents: every answer of 400 and above, whoever refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
KINDS: Mapping[int, str] = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "request-timeout",
    409: "conflict",
    413: "content-too-large",
    415: "unsupported-media-type",
    422: "invalid-request",
    429: "too-many-requests",
    500: "internal-error",
    503: "unavailable",
}
"""The last part of `type` by status, where nothing more exact is given."""


class Problem(HTTPException):
    """A refusal. `detail` is a sentence for the caller; `kind` the last part of `type`; `errors` single places."""

    def __init__(
        self,
        status: int,
        detail: str,
        kind: str = "",
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.kind, self.errors = kind, tuple(errors)

    def response(self) -> Response:
        """The answer that says it."""
        return problem(self.status_code, str(self.detail), self.kind, self.headers, self.errors)


def problem(
    status: int,
    detail: str,
    kind: str = "",
    headers: Mapping[str, str] | None = None,
    errors: Sequence[Mapping[str, str]] = (),
) -> Response:
    """A problem document as an answer."""
    document: dict[str, Any] = {
        "type": f"urn:l1-diagnoser:problem:{kind or KINDS.get(status, 'error')}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if errors:
        document["errors"] = [dict(error) for error in errors]
    fixed = {**(headers or {}), "Cache-Control": "no-store"}
    return Response(json.dumps(document, ensure_ascii=False), status, fixed, MEDIA_TYPE)


def install(app: FastAPI, methods: Callable[[str], str]) -> None:
    """Answers of FastAPI and Starlette in the same form. `methods` tells what is possible at a path."""

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        if isinstance(error, Problem):
            return error.response()
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = methods(request.url.path) or headers.get("Allow", "")
        return problem(
            error.status_code, _sentence(request, error.status_code, str(error.detail), headers), headers=headers
        )

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        places = [{"where": _where(one["loc"]), "detail": str(one["msg"])} for one in error.errors()]
        said = "; ".join(f"{place['where']}: {place['detail']}" for place in places[:3])
        return problem(422, f"The request is not valid: {said}.", errors=places)


def _sentence(request: Request, status: int, detail: str, headers: Mapping[str, str]) -> str:
    if status == 404:
        return f"There is nothing at {request.url.path}; /api/v1/openapi.json lists what there is."
    if status == 405:
        return f"{request.method} is not possible at {request.url.path}; these are: {headers['Allow']}."
    return detail


def _where(location: Sequence[Any]) -> str:
    """("query", "limit") -> "query.limit"."""
    return ".".join(str(part) for part in location)
