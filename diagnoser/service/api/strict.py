"""What the framework lets pass and the description or JSON does not: parameters given twice, NaN; and which methods
are possible.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from functools import cache
from typing import Any

from fastapi import FastAPI, Request

from diagnoser.service.api.limits import UPLOAD_PATH
from diagnoser.service.api.problems import Problem


def once(request: Request) -> None:
    """Problem 422 for a parameter that is given several times and is no list: the last one would win in silence."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    twice = [name for name, count in given.items() if count > 1]
    if twice:
        template = getattr(request.scope.get("route"), "path_format", "")
        operation = request.app.openapi()["paths"].get(template, {}).get(request.method.lower(), {})
        single = {one["name"] for one in operation.get("parameters", ()) if not _is_list(one["schema"])}
        found = next((name for name in twice if name in single), None)
        if found is not None:
            raise Problem(422, f"The parameter {found} stands there {given[found]} times; give it once.")


async def sound(request: Request) -> None:
    """Problem 422 for JSON that Python takes and nobody else: NaN, infinities, halves of characters."""
    if request.method != "POST" or request.url.path.rstrip("/") == UPLOAD_PATH:
        return
    try:
        found = json.loads(await request.body() or b"null", parse_constant=_finite, parse_float=_finite)
        json.dumps(found, ensure_ascii=False).encode()
    except ValueError as error:
        raise Problem(422, f"The body is no sound JSON: {error}.") from None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number that JSON knows")
    return value


def _is_list(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "array"


def methods(app: FastAPI, path: str) -> str:
    """The methods that are possible at that path, as in an Allow header."""
    found = [
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if _pattern(template).fullmatch(path)
        for method in operations
    ]
    return ", ".join(sorted(set(found)))


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(
        "".join(".+" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{.+?\})", template))
    )
