"""Configuration over HTTP: what is read, and that no JSON makes a reader raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnoser.engines import adapters
from diagnoser.engines.base import FACTS

QUERIES = {(adapter.family, query.path): query for adapter in adapters() for query in adapter.fact_queries}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
KEYS = ("vllm_config", "scheduler_config", "data", "loads", "internal_states", "version", "max_running_requests", "id")


def _facts(family: str, path: str, data: object) -> dict[str, Any]:
    return {fact.name: fact.value for fact in QUERIES[family, path].read(data, path)}


def test_vllm_server_info() -> None:
    config = {
        "vllm_config": {
            "scheduler_config": {
                "max_num_seqs": 64,
                "max_num_batched_tokens": 1024,
                "watermark": 0.0,
                "policy": "fcfs",
            },
            "parallel_config": {"data_parallel_size": 2},
            "model_config": {"max_model_len": 4096},
            "kv_transfer_config": {
                "kv_connector": "OffloadingConnector",
                "kv_connector_extra_config": {"cpu_bytes_to_use": 1000},
            },
        }
    }
    assert _facts("vllm", "/server_info?config_format=json", config) == {
        "max_num_seqs": 64,
        "max_num_batched_tokens": 1024,
        "watermark": 0,
        "scheduling_policy": "fcfs",
        "dp_size": 2,
        "max_model_len": 4096,
        "kv_connector": "OffloadingConnector",
        "l2_capacity_bytes": 1000,
    }


def test_vllm_models_takes_the_base_model() -> None:
    cards = {"data": [{"id": "lora", "parent": "base"}, {"id": "base", "parent": None, "max_model_len": 8192}]}
    assert _facts("vllm", "/v1/models", cards) == {"model": "base", "max_model_len": 8192}
    assert _facts("vllm", "/version", {"version": "0.32.0"}) == {"version": "0.32.0"}


def test_sglang_server_info() -> None:
    info = {
        "version": "0.5.23",
        "schedule_conservativeness": 0.3,
        "chunked_prefill_size": 8192,
        "disaggregation_mode": "null",
        "disable_radix_cache": False,
        "max_running_requests": None,
        "internal_states": [
            {"effective_max_running_requests_per_dp": 48},
            {"effective_max_running_requests_per_dp": 32},
        ],
    }
    for path in ("/server_info", "/get_server_info"):
        assert _facts("sglang", path, info) == {
            "version": "0.5.23",
            "schedule_conservativeness": 0.3,
            "chunked_prefill_size": 8192,
            "disaggregation_mode": "null",
            "enable_prefix_caching": True,
            "max_running_requests": 32,
        }


def test_sglang_loads() -> None:
    load = {"max_running_requests": 64, "num_waiting_uncached_tokens": 900}
    assert _facts("sglang", "/v1/loads", {"loads": [load]}) == {
        "max_running_requests": 64,
        "num_waiting_uncached_tokens": 900,
    }
    assert _facts("sglang", "/v1/loads", {"loads": [load, load]}) == {"max_running_requests": 64}


@pytest.mark.parametrize("key", QUERIES, ids=lambda key: f"{key[0]}{key[1]}")
@given(data=JSON, inner=JSON)
def test_no_json_makes_a_reader_raise(key: tuple[str, str], data: object, inner: object) -> None:
    for body in (
        data,
        {name: inner for name in KEYS},
        {"vllm_config": {name: inner for name in KEYS}},
        {"loads": [inner]},
    ):
        for fact in QUERIES[key].read(body, "test"):
            assert fact.name in FACTS


def test_queries_are_relative_paths() -> None:
    assert all(path.startswith("/") for _, path in QUERIES)


def test_facts_of_pages_are_listed(page) -> None:
    for name in ("vllm-0.32.0", "sglang-0.5.23", "l2-vllm-offload-0.32.0-full"):
        for snapshot in page(name):
            assert set(snapshot.facts) <= set(FACTS)
