"""The page at `/` and its files under `/static/`. Nothing of an engine is in them, so they need no token."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from starlette.responses import Response

from diagnoser.service.api import views
from diagnoser.service.api.problems import Problem

router = APIRouter(include_in_schema=False)
TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Files of another kind are not served, nor are those without a suffix; a licence is for who reads the source."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is sent."""

    body: bytes
    packed: bytes
    media_type: str
    tag: str


def _file(body: bytes, media_type: str) -> File:
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:20]}"'
    return File(body, gzip.compress(body, 9, mtime=0), media_type, tag)


@cache
def contents() -> Mapping[str, File]:
    """Every file by its path below the page's folder: a request can only name what is in here."""
    root = files("diagnoser.service") / "page"
    return {path: _file(item.read_bytes(), TYPES[path.rpartition(".")[2]]) for path, item in _walk(root, "")}


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        path = prefix + item.name
        if item.is_dir():
            yield from _walk(item, f"{path}/")
        elif path.rpartition(".")[2] in TYPES:
            yield path, item


@router.get("/")
async def index(request: Request) -> Response:
    """The page."""
    return _answer(request, "index.html")


@router.get("/favicon.ico")
async def favicon(request: Request) -> Response:
    """For browsers that ask before they have read the page."""
    return _answer(request, "icon.svg")


@router.get("/static/{path:path}")
async def static(request: Request, path: str) -> Response:
    """One of its files."""
    return _answer(request, path)


def _answer(request: Request, path: str) -> Response:
    found = contents().get(path)
    if found is None:
        raise Problem(404, "The page has no such file.")
    headers = {"ETag": found.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if views.unchanged(request, found.tag):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, media_type=found.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(found.body, media_type=found.media_type, headers=headers)
