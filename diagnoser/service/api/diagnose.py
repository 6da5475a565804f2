"""Diagnoses on request: an uploaded page or recording, a live sample, and capacity before an engine runs."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from diagnoser.engines.base import FACTS
from diagnoser.errors import FactsError
from diagnoser.facts import facts_of
from diagnoser.language import Language
from diagnoser.language.diagnosis import in_language
from diagnoser.live import Plan
from diagnoser.outputs.contract import as_data
from diagnoser.pipeline import diagnose
from diagnoser.service.api import models, reach, views
from diagnoser.service.api.jobs import work
from diagnoser.service.api.languages import Asked, Heard
from diagnoser.service.api.problems import Problem
from diagnoser.stretch import with_what_if

router = APIRouter(prefix="/api/v1", tags=["diagnose"])
PAGE = '# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine="0",model_name="m"} 41.0\n'
BODY = {
    "requestBody": {
        "description": "A saved metrics page, or a recording as `diagnose record` writes it (.tar, .tar.gz, .tar.xz).",
        "content": {
            "text/plain": {"schema": {"type": "string"}, "example": PAGE},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
Count = Annotated[int | None, Field(ge=1, le=2**20)]
Size = Annotated[
    str | None,
    Field(max_length=40, pattern=r"^[0-9]{1,15}(\.[0-9]{1,6})? ?([kKmMgGtT][iI]?)?[bB]?$", examples=["60GiB"]),
]
Tokens = Annotated[str | None, Field(max_length=40, pattern=r"^[0-9]{1,12}(\.[0-9]{1,6})?[kKmM]?$", examples=["32K"])]


class Wish(Asked):
    """What to diagnose, and how."""

    target: Annotated[
        str | None,
        Query(max_length=500, description="A live engine inside web.allow, host:port; without it the body counts."),
    ] = None
    window: Annotated[float, Query(ge=2, le=600, description="Seconds that a verdict is about.")] = 30.0
    step: Annotated[float, Query(ge=1, le=3600, description="Seconds between two windows of a recording.")] = 5.0
    fact: Annotated[
        list[Annotated[str, Query(max_length=200)]], Query(description="NAME=VALUE, what no page tells.", max_length=50)
    ] = []


@router.post("/diagnose", summary="An upload, or a live sample", openapi_extra=BODY)
async def diagnosed(request: Request, wish: Annotated[Wish, Query()], language: Heard) -> models.Diagnosed:
    """Send a page or a recording as the body, or name a `target`, which is then sampled for one window (at most 60 s).

    Of a recording the worst moment is diagnosed, with the verdicts of all others beside it.
    """
    if wish.target is None:
        found = await _uploaded(request, wish, language)
    else:
        found = await _live(request, wish, wish.target, language)
    return models.Diagnosed.model_validate(found)


async def _uploaded(request: Request, wish: Wish, language: Language) -> dict[str, Any]:
    rules = [str(Path(folder).resolve()) for folder in views.service_of(request).config.rules]
    async with _kept(request) as path:
        job = {"do": "diagnose", "path": str(path), "window": wish.window, "step": wish.step, "language": language}
        with request.app.state.jobs:  # only now: who sends slowly keeps no place
            return await work({**job, "facts": wish.fact, "rules": rules})


@asynccontextmanager
async def _kept(request: Request) -> AsyncIterator[Path]:
    """The body in a file that nobody else can read, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="diagnose-") as folder:
        path = Path(folder) / "upload"
        with path.open("wb") as file:
            async for chunk in request.stream():
                file.write(chunk)
            size = file.tell()
        if not size:
            raise Problem(422, "Send a metrics page or a recording as the body, or name a target.", "unusable-input")
        yield path


async def _live(request: Request, wish: Wish, target: str, language: Language) -> dict[str, Any]:
    service, window = views.service_of(request), min(wish.window, 60.0)
    try:
        facts, notes = facts_of([], wish.fact, FACTS)
    except FactsError as error:
        raise Problem(422, str(error)) from None
    checked = await reach.check(target, service.config.web.allow)
    with request.app.state.jobs:
        windows = await reach.sample(checked, Plan(window=window, interval=min(1.0, window / 10), facts=facts))
    found = await run_in_threadpool(diagnose, windows, service.book)
    shown = [as_data(in_language(with_what_if(one, service.book), language)) for one in found]
    return {"notes": notes, "diagnoses": shown, "timeline": []}


class CapacityWish(BaseModel):
    """A model and its deployment; the names are the flags of `diagnose capacity`, sizes as "60GiB" or bytes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "layers": 32, "kv_heads": 8, "head_dim": 128, "engine": "vllm", "pool_bytes": "60GiB",
                    "prompt": "8K", "output": "1K",
                }
            ]
        },
    )  # fmt: skip

    config: Annotated[
        dict[str, Any] | None, Field(description="The model's config.json; or give layers, kv_heads, head_dim.")
    ] = None
    layers: Annotated[int | None, Field(ge=1, le=10_000)] = None
    kv_heads: Count = None
    head_dim: Count = None
    v_head_dim: Count = None
    kv_lora_rank: Count = None
    rope_dim: Count = None
    index_head_dim: Count = None
    window: Count = None
    window_layers: Annotated[int, Field(ge=0, le=10_000)] = 0
    engine: Literal["vllm", "sglang"] = "vllm"
    tp: Annotated[int, Field(ge=1, le=4096)] = 1
    pp: Annotated[int, Field(ge=1, le=4096)] = 1
    dcp: Annotated[int, Field(ge=1, le=4096)] = 1
    dp: Annotated[int, Field(ge=1, le=4096)] = 1
    kv_dtype: Annotated[str, Field(max_length=40)] = "auto"
    block_size: Count = None
    max_model_len: Tokens = None
    max_num_seqs: Count = None
    pool_bytes: Size = None
    pool_total: Size = None
    gpu_memory: Size = None
    memory_fraction: Annotated[float | None, Field(gt=0, le=1)] = None
    weights: Size = None
    reserve: Size = None
    prompt: Tokens = None
    output: Tokens = None
    max_tokens: Tokens = None
    observed_tokens: Tokens = None


CAPACITY: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "What `diagnose capacity --format json` prints.",
        "content": {"application/json": {"schema": {"type": "object", "required": ["schema_version", "model"]}}},
    }
}


@router.post("/capacity", summary="Tokens and concurrency of a model, before an engine runs", responses=CAPACITY)
async def capacity(request: Request, wish: CapacityWish) -> dict[str, Any]:
    """Every assumption is in the answer; docs/capacity.md has the formulas."""
    with request.app.state.jobs:
        return await work({"do": "capacity", "config": wish.config, "flags": wish.model_dump(exclude={"config"})})
