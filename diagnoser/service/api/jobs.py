"""Runs the worker: few at once, each with a deadline, and whatever becomes of it the service goes on."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from diagnoser.service.api.problems import Problem

log = logging.getLogger("diagnoser.api")
AT_ONCE = 2
DEADLINE_SECONDS = 90.0
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
"""What the worker gets instead of our environment, which may hold secrets."""


class Jobs:
    """Heavy work of requests. A caller that finds no place is told to come again."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = at_once

    def __enter__(self) -> None:
        """Takes a place. Problem 503 if there is none."""
        if self._free <= 0:
            raise Problem(503, "Other uploads or samples are being worked on.", "busy", {"Retry-After": "10"})
        self._free -= 1

    def __exit__(self, *_: object) -> None:
        self._free += 1


async def work(job: Mapping[str, Any]) -> dict[str, Any]:
    """The result of one job. Problem 422 says why there is none."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "diagnoser.service.api.worker",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        cwd="/", env=environment(os.environ),
    )  # fmt: skip
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            out, _ = await process.communicate(json.dumps(job).encode())
    except TimeoutError:
        raise Problem(422, f"It takes more than {DEADLINE_SECONDS:g} s to work that out.", "too-much-work") from None
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if not out:
        log.warning("a worker ended without an answer", extra={"code": process.returncode})
    return _answer(out)


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Of the worker: it has to find this package where we did."""
    places = [os.path.abspath(place) for place in ours.get("PYTHONPATH", "").split(os.pathsep) if place]
    return {**ENVIRONMENT, **({"PYTHONPATH": os.pathsep.join(places)} if places else {})}


def _answer(out: bytes) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError:
        reason = "It needs more memory or time than one request may take."
        raise Problem(422, reason, "too-much-work") from None
    if "error" in answer:
        sentence = str(answer["error"])
        raise Problem(422, sentence[:1].upper() + sentence[1:], "unusable-input")
    result: dict[str, Any] = answer["result"]
    return result
