"""Engines and their verdicts: the fleet, one engine, its checklist, its what-if."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from diagnoser.language.diagnosis import in_language
from diagnoser.outputs.contract import as_data
from diagnoser.service.api import models, views
from diagnoser.service.api.languages import Asked, Heard, Spoken
from diagnoser.service.board import Entry
from diagnoser.stretch import with_what_if

router = APIRouter(prefix="/api/v1", tags=["engines"])
MAX_TEXT = 300
Text = Annotated[str, Query(max_length=MAX_TEXT)]
EngineId = Annotated[
    str, Path(max_length=MAX_TEXT, description="id of an engine: target/rank", examples=[models.ENGINE])
]
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "Nothing was evaluated since that ETag."}}
DIAGNOSIS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The output contract, as `--format jsonl` prints it.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Diagnosis"}}},
    }
}
CAPACITY_SIGNALS = (
    "l1_capacity_tokens", "l1_free_last_tokens", "head_need_tokens", "token_seconds_per_request",
    "resident_tokens_per_request", "concurrency_bound_requests", "slots_limit_requests", "running_max_requests",
    "arrival_rate", "service_rate", "service_rate_max", "rho", "required_pool_low_tokens", "required_pool_tokens",
    "required_pool_high_tokens", "time_to_exhaustion_seconds",
)  # fmt: skip
CAPACITY_FACTS = (
    "max_num_seqs", "max_num_batched_tokens", "max_model_len", "max_running_requests", "chunked_prefill_size",
    "max_prefill_tokens", "block_size", "page_size", "num_gpu_blocks", "kv_cache_size_tokens", "max_total_num_tokens",
    "kv_cache_max_concurrency", "cache_dtype", "gpu_memory_utilization", "tp_size", "dp_size", "pp_size",
    "l2_capacity_bytes",
)  # fmt: skip


class Filter(Asked):
    """Which engines. A repeated parameter means any of them."""

    bottleneck: list[models.Bottleneck] = []
    severity: list[models.Severity] = []
    model: list[Text] = []
    family: list[Text] = []
    target: list[Text] = []
    since: Annotated[
        str | None, Query(max_length=40, description="A cursor: only what has changed.", examples=[models.CURSOR])
    ] = None

    def chosen(self, entries: Sequence[Entry]) -> list[Entry]:
        """Those of the entries that match."""
        return [entry for entry in entries if self._matches(entry)]

    def _matches(self, entry: Entry) -> bool:
        verdict, who = entry.diagnosis.verdict, entry.diagnosis.engine
        asked = (
            (self.bottleneck, verdict.bottleneck),
            (self.severity, verdict.severity),
            (self.model, who.model or ""),
            (self.family, who.family),
            (self.target, who.target),
        )
        return all(not wanted or value in wanted for wanted, value in asked)


@router.get("/engines", summary="The fleet, worst first", responses=NOT_MODIFIED, response_model=models.Engines)
async def engines(request: Request, wanted: Annotated[Filter, Query()], language: Heard) -> Response:
    """Every engine rank in a line. With `since` only those that changed, and who is still there."""
    service = views.service_of(request)
    tag = views.etag(service, language, service.stats.last_evaluation_at)
    if views.unchanged(request, tag):
        return views.not_modified(tag)
    matching, position = wanted.chosen(service.board.entries()), views.since(service, wanted.since)
    shown = [entry for entry in matching if position is None or entry.cursor > position]
    found = models.Engines(
        cursor=views.cursor(service),
        complete=position is None,
        ids=[entry.key.id for entry in matching],
        engines=[views.engine(entry, language) for entry in shown],
    )
    return Response(found.model_dump_json(), media_type="application/json", headers=views.tagged(tag))


class VerdictFilter(Filter):
    """The same with a limit: a verdict in full has some 60 KB."""

    limit: Annotated[int, Query(ge=1, le=1000)] = 50


VERDICTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Output contract objects, worst first; `ids` names all that match.",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["cursor", "complete", "ids", "verdicts"],
                    "properties": {
                        "cursor": {"type": "string"},
                        "complete": {"type": "boolean"},
                        "ids": {"type": "array", "items": {"type": "string"}},
                        "verdicts": {"type": "array", "items": {"$ref": "#/components/schemas/Diagnosis"}},
                    },
                }
            }
        },
    },
    **NOT_MODIFIED,
}


@router.get("/verdicts", summary="Verdicts in full, worst first", response_class=Response, responses=VERDICTS)
async def verdicts(request: Request, wanted: Annotated[VerdictFilter, Query()], language: Heard) -> Response:
    """The output contract of every engine that matches, as `diagnose --format json` prints it."""
    service = views.service_of(request)
    tag = views.etag(service, language, service.stats.last_evaluation_at)
    if views.unchanged(request, tag):
        return views.not_modified(tag)
    matching, position = wanted.chosen(service.board.entries()), views.since(service, wanted.since)
    shown = [entry for entry in matching if position is None or entry.cursor > position][: wanted.limit]
    found = {
        "cursor": views.cursor(service),
        "complete": position is None and len(shown) == len(matching),
        "ids": [entry.key.id for entry in matching],
    }

    def told() -> Response:
        return _json({**found, "verdicts": [as_data(in_language(one.diagnosis, language)) for one in shown]}, tag)

    return await run_in_threadpool(told)


def _json(data: object, tag: str) -> Response:
    return JSONResponse(data, headers=views.tagged(tag))


@router.get(
    "/engines/{engine:path}/verdict",
    summary="One verdict in full",
    response_class=Response,
    responses={**DIAGNOSIS, **NOT_MODIFIED},
)
async def verdict(request: Request, engine: EngineId, language: Spoken) -> Response:
    """The output contract of one engine rank, by the JSON Schema of the package."""
    service = views.service_of(request)
    entry = views.entry_of(service, engine)
    tag = views.etag(service, language, entry.diagnosis.at)
    if views.unchanged(request, tag):
        return views.not_modified(tag)
    return _json(as_data(in_language(entry.diagnosis, language)), tag)


@router.get("/engines/{engine:path}/checklist", summary="Questions, answers, evidence")
async def checklist(request: Request, engine: EngineId, language: Spoken) -> models.Checklist:
    """The checklist of the present verdict; `id` of a check is at /api/v1/rules/checks/{id}."""
    entry = views.entry_of(views.service_of(request), engine)
    data = as_data(in_language(entry.diagnosis, language))
    return models.Checklist(
        id=entry.key.id,
        at=data["at"],
        headline=data["verdict"]["headline"],
        because=data["verdict"]["because"],
        checks=data["checks"],
        findings=data["findings"],
    )


@router.get("/engines/{engine:path}/what-if", summary="What each change would bring")
async def what_if(request: Request, engine: EngineId, language: Spoken) -> models.WhatIfs:
    """Also where no gate is closed; docs/forecast.md tells how far each prediction is off."""
    service = views.service_of(request)
    entry = views.entry_of(service, engine)
    data = as_data(in_language(with_what_if(entry.diagnosis, service.book), language))
    load = {name: data["signals"][name] for name in views.LOAD if name in data["signals"]}
    return models.WhatIfs(
        id=entry.key.id,
        at=data["at"],
        bottleneck=data["verdict"]["bottleneck"],
        load=load,
        changes=data["what_if"],
    )


@router.get("/engines/{engine:path}/capacity", summary="What one engine holds, and what its load asks for")
async def capacity(request: Request, engine: EngineId, language: Spoken) -> models.EngineCapacity:
    """The pool as it is, the facts it follows from, and the pool that the present load would need."""
    entry = views.entry_of(views.service_of(request), engine)
    data = as_data(in_language(entry.diagnosis, language))
    return models.EngineCapacity(
        id=entry.key.id,
        at=data["at"],
        l1=views.pool(entry.diagnosis.l1),
        facts={name: data["facts"][name] for name in CAPACITY_FACTS if name in data["facts"]},
        signals={name: data["signals"][name] for name in CAPACITY_SIGNALS if name in data["signals"]},
    )


@router.get(
    "/engines/{engine:path}", summary="One engine in a line", responses=NOT_MODIFIED, response_model=models.Engine
)
async def one(request: Request, engine: EngineId, language: Spoken) -> Response:
    """The same as in the fleet."""
    service = views.service_of(request)
    entry = views.entry_of(service, engine)
    tag = views.etag(service, language, entry.diagnosis.at)
    if views.unchanged(request, tag):
        return views.not_modified(tag)
    return _json(views.engine(entry, language).model_dump(mode="json"), tag)


@router.get("/targets", summary="What is polled", tags=["service"])
async def targets(request: Request) -> models.Targets:
    """Every target of the configuration and its last poll."""
    found = [models.Target.model_validate(asdict(target)) for target in views.service_of(request).targets()]
    return models.Targets(targets=found)
