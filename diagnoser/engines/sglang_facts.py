"""SGLang's configuration: constants among the metrics, and what its HTTP server tells (GET only).

Source: sglang/srt/entrypoints/http_server.py (/server_info, /get_server_info, /v1/loads, /model_info).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diagnoser.engines.base import FactQuery
from diagnoser.engines.facts import dig, items, pick, text_fact, value_of
from diagnoser.engines.page import Page
from diagnoser.engines.sglang_names import CAPACITY, QUEUE
from diagnoser.engines.sglang_pool import Read, capacity_of
from diagnoser.model import Fact

_ARGS = (
    ("schedule_conservativeness", "schedule_conservativeness"),
    ("chunked_prefill_size", "chunked_prefill_size"),
    ("max_prefill_tokens", "max_prefill_tokens"),
    ("decode_log_interval", "decode_log_interval"),
    ("schedule_policy", "scheduling_policy"),
    ("page_size", "page_size"),
    ("max_total_num_tokens", "max_total_num_tokens"),
    ("context_length", "max_model_len"),
    ("kv_cache_dtype", "cache_dtype"),
    ("dp_size", "dp_size"),
    ("tp_size", "tp_size"),
    ("pp_size", "pp_size"),
    ("enable_hierarchical_cache", "enable_hierarchical_cache"),
    ("hicache_ratio", "hicache_ratio"),
    ("hicache_size", "hicache_size"),
    ("hicache_write_policy", "l2_write_policy"),
    ("hicache_host_memory_mode", "l2_memory_mode"),
    ("enable_hisparse", "enable_hisparse"),
)
_SLOTS = "effective_max_running_requests_per_dp"


def page_facts(page: Page, read: Read) -> dict[str, Fact]:
    """Facts that are metrics or labels of a rank."""
    gauges = {
        "max_total_num_tokens": (capacity_of(page, read), CAPACITY),
        "page_size": (read("sglang:page_size"), "sglang:page_size"),
        "max_model_len": (read("sglang:context_len"), "sglang:context_len"),
    }
    found = {name: Fact(name, value, origin) for name, (value, origin) in gauges.items() if value is not None}
    mode = next(iter(page.label_values((*QUEUE, CAPACITY), "engine_type")), None)
    if mode:
        value = "null" if mode == "unified" else mode
        found["disaggregation_mode"] = Fact("disaggregation_mode", value, "label engine_type")
    return found


def _server_info(data: object, origin: str) -> Iterator[Fact]:
    yield from text_fact("version", dig(data, "version"), origin)
    yield from text_fact("model", dig(data, "served_model_name") or dig(data, "model_path"), origin)
    yield from pick(data, _ARGS, origin)
    yield from _mode(data, origin)
    disabled = dig(data, "disable_radix_cache")
    if isinstance(disabled, bool):
        yield Fact("enable_prefix_caching", not disabled, f"{origin} (disable_radix_cache)")
    slots = _least(dig(state, _SLOTS) for state in items(dig(data, "internal_states")))
    if slots is not None:
        yield Fact("max_running_requests", slots, f"{origin} ({_SLOTS})")


def _mode(data: object, origin: str) -> Iterator[Fact]:
    """ "null" is a mode here (no disaggregation), not an unset value."""
    mode = dig(data, "disaggregation_mode")
    if isinstance(mode, str) and mode:
        yield Fact("disaggregation_mode", mode, origin)


def _loads(data: object, origin: str) -> Iterator[Fact]:
    loads = list(items(dig(data, "loads")))
    slots = _least(dig(load, "max_running_requests") for load in loads)
    if slots is not None:
        yield Fact("max_running_requests", slots, origin)
    if len(loads) == 1:
        yield from pick(loads[0], [("num_waiting_uncached_tokens", "num_waiting_uncached_tokens")], origin)


def _model_info(data: object, origin: str) -> Iterator[Fact]:
    yield from text_fact("model", dig(data, "served_model_name") or dig(data, "model_path"), origin)


def _least(values: Iterable[object]) -> float | None:
    """The smallest number: ranks share one limit, and the smallest binds first should they differ."""
    read = (value_of(value) for value in values)
    return min((value for value in read if isinstance(value, float)), default=None)


QUERIES = (
    FactQuery("/server_info", _server_info),
    FactQuery("/get_server_info", _server_info),
    FactQuery("/v1/loads", _loads),
    FactQuery("/model_info", _model_info),
)
