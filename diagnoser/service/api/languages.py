"""The language of an answer: what the query asks for, else the best of Accept-Language that there is, else English."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diagnoser.language import LANGUAGES, Language

DESCRIPTION = "Language of the sentences. Default: the best of Accept-Language, else English."
Wish = Annotated[Language | None, Query(description=DESCRIPTION)]
Accepted = Annotated[str, Header(description="Languages of the reader with their weights (RFC 9110).")]
LONGEST = 1000
"""Characters of the header that are looked at."""


class Asked(BaseModel):
    """Query parameters of whatever says sentences."""

    model_config = ConfigDict(extra="forbid")

    language: Wish = None


def best(accepted: str) -> Language:
    """Of an Accept-Language header: the language with the highest weight that there is; of equals the first."""
    found: list[tuple[float, Language]] = []
    for part in accepted[:LONGEST].split(","):
        name, *rest = (text.strip().lower() for text in part.split(";"))
        language = "en" if name == "*" else next((one for one in LANGUAGES if one == name.split("-")[0]), None)
        weight = _weight(rest[0]) if rest else 1.0
        if language is not None and weight > 0:
            found.append((weight, language))
    return max(found, key=lambda one: one[0], default=(0.0, LANGUAGES[0]))[1]


def _weight(text: str) -> float:
    """Of "q=0.8"; 0 for what is none."""
    name, _, value = text.partition("=")
    try:
        weight = float(value) if name.strip() == "q" else 0.0
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0


def heard(request: Request, accept_language: Accepted = "") -> Language:
    """Where the query's parameters are a model of their own, which has the language among them."""
    asked = request.query_params.get("language", "")
    language = next((one for one in LANGUAGES if one == asked), None) or best(accept_language)
    request.state.language = language
    return language


def asked(request: Request, language: Wish = None, accept_language: Accepted = "") -> Language:
    """Where there are no other parameters."""
    return heard(request, accept_language)


Heard = Annotated[Language, Depends(heard)]
Spoken = Annotated[Language, Depends(asked)]


class LanguageLayer:
    """Says in which language an answer is, wherever one was chosen."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""

        async def said(message: Message) -> None:
            language = scope["state"].get("language") if message["type"] == "http.response.start" else None
            if language is not None:
                headers = MutableHeaders(scope=message)
                headers.add_vary_header("Accept-Language")
                if message["status"] < 400:
                    headers["Content-Language"] = language
            await send(message)

        if scope["type"] == "http":
            scope.setdefault("state", {})
            await self._app(scope, receive, said)
        else:
            await self._app(scope, receive, send)
