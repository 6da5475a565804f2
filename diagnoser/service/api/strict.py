"""What the description of the API says of a request that the framework lets pass: parameters given twice, methods."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

from fastapi import FastAPI, Request

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
