"""A Capacity as JSON-ready data: what `--format json` prints. Every size is a number of bytes, tokens or requests."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Any

from diagnoser.capacity.compare import Comparison
from diagnoser.capacity.estimate import EFFICIENCY, Capacity, Concurrency
from diagnoser.capacity.plan import Plan

SCHEMA_VERSION = 1


def as_data(capacity: Capacity, comparison: Comparison | None = None) -> dict[str, Any]:
    """The capacity of one replica. `*_aggregate`: bytes on all its GPUs; tokens, requests of all ranks."""
    made, size = capacity.plan, capacity.size
    peak, dp = capacity.at.get("peak"), made.deployment.dp
    return {
        "schema_version": SCHEMA_VERSION,
        "model": _model(made),
        "deployment": asdict(made.deployment),
        **_bytes(made),
        "pool_tokens": size.tokens if size else None,
        "pool_tokens_aggregate": size.tokens * dp if size else None,
        "pool_tokens_usable": size.usable_tokens if size else None,
        "pool_tokens_range": [capacity.tokens_low, capacity.tokens_high] if size else None,
        "pool": {**asdict(size), "notes": list(size.notes)} if size else None,
        "max_concurrency": peak.requests if peak else None,
        "max_concurrency_aggregate": peak.requests * dp if peak else None,
        "max_concurrency_range": [peak.low, peak.high] if peak else None,
        "bound": peak.bound.name if peak else None,
        "concurrency": {moment: _concurrency(found) for moment, found in capacity.at.items()},
        "efficiency_ratio": EFFICIENCY,
        "requests": [asdict(request) for request in capacity.workload.requests] if capacity.workload else [],
        "reservation": asdict(capacity.reserved) if capacity.reserved else None,
        "comparison": asdict(comparison) if comparison else None,
        "assumptions": list(capacity.notes),
    }


def _model(made: Plan) -> dict[str, Any]:
    model = made.model
    return {
        "name": model.name, "architecture": model.architecture, "layers": model.describe(), "kv_dtype": made.kv_dtype,
        "max_length": model.max_length, "parameters": model.weights.parameters if model.weights else None,
    }


def _bytes(made: Plan) -> dict[str, Any]:
    page, in_flight = made.deployment.page, made.deployment.in_flight
    return {
        "kv_bytes_per_token": made.token_bytes,
        "kv_bytes_per_token_per_gpu": _number(made.token_bytes_per_gpu),
        "kv_bytes_per_token_aggregate": _number(made.token_bytes_aggregate),
        "window_bytes_per_request": made.window_bytes(),
        "window_bytes_per_request_paged": made.window_bytes(page, 1),
        "window_bytes_per_request_prefill": made.window_bytes(page, in_flight),
        "state_bytes_per_request": made.state_bytes,
        "state_bytes_per_request_per_gpu": made.state_bytes_per_gpu,
    }


def _number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else round(float(value), 3)


def _concurrency(found: Concurrency) -> dict[str, Any]:
    return {
        "requests": found.requests, "range": [found.low, found.high], "bound": found.bound.name,
        "limits": [asdict(limit) for limit in found.limits],
    }
