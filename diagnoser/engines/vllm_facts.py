"""vLLM's configuration: labels of vllm:cache_config_info, and what its HTTP server tells (GET only).

Source: vllm/config/cache.py (metrics_info), vllm/entrypoints/serve (/version, /v1/models, /server_info in dev mode).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diagnoser.engines.base import FactQuery
from diagnoser.engines.facts import GIB, dig, items, number, pick, text_fact
from diagnoser.engines.page import Page
from diagnoser.engines.vllm_names import INFO
from diagnoser.model import Fact

LABEL_ORIGIN = f"label of {INFO}"
_LABELS = (
    "block_size",
    "cache_dtype",
    "enable_prefix_caching",
    "gpu_memory_utilization",
    "kv_cache_max_concurrency",
    "kv_cache_size_tokens",
    "kv_offloading_size",
    "sliding_window",
)
_SCHEDULER = (
    ("max_num_seqs", "max_num_seqs"),
    ("max_num_batched_tokens", "max_num_batched_tokens"),
    ("max_model_len", "max_model_len"),
    ("watermark", "watermark"),
    ("enable_chunked_prefill", "enable_chunked_prefill"),
    ("scheduler_reserve_full_isl", "scheduler_reserve_full_isl"),
    ("policy", "scheduling_policy"),
    ("async_scheduling", "async_scheduling"),
)
_PARALLEL = (
    ("data_parallel_size", "dp_size"),
    ("tensor_parallel_size", "tp_size"),
    ("pipeline_parallel_size", "pp_size"),
)


def config_labels(page: Page, rank: str) -> Mapping[str, str]:
    """The labels of the config series of a rank, of any rank where it has none of its own.

    0.8.5 has no engine label at all and 0.9.2 registers engine="0" only; the content is the same for every rank.
    After a restart with other flags the last series on the page counts.
    """
    series: Sequence[Mapping[str, str]] = [sample.labels for sample in page.named(INFO)]
    own = [labels for labels in series if labels.get("engine", rank) == rank]
    return (own or series or [{}])[-1]


def label_facts(labels: Mapping[str, str], blocks: int | None) -> dict[str, Fact]:
    """Facts of the config labels. `blocks` is the pool of this engine: the label is a sum over engines."""
    found = {fact.name: fact for fact in pick(labels, [(name, name) for name in _LABELS], LABEL_ORIGIN)}
    if blocks is not None:
        found["num_gpu_blocks"] = Fact("num_gpu_blocks", float(blocks), f"{LABEL_ORIGIN}, of this engine")
    size = number(found, "kv_offloading_size")
    if size is not None and size > 0 and labels.get("kv_offloading_backend", "native") == "native":
        found["l2_capacity_bytes"] = Fact("l2_capacity_bytes", size * GIB, f"{LABEL_ORIGIN} (kv_offloading_size, GiB)")
    return found


def _version(data: object, origin: str) -> Iterator[Fact]:
    yield from text_fact("version", dig(data, "version"), origin)


def _models(data: object, origin: str) -> Iterator[Fact]:
    """The base model: the first card that has a length and no parent (LoRA cards name their parent)."""
    for card in items(dig(data, "data")):
        if dig(card, "parent") is None:
            yield from text_fact("model", dig(card, "id"), origin)
            yield from pick(card, [("max_model_len", "max_model_len")], origin)
            return


def _server_info(data: object, origin: str) -> Iterator[Fact]:
    config = dig(data, "vllm_config")
    yield from pick(dig(config, "model_config"), [("max_model_len", "max_model_len")], origin)
    yield from pick(dig(config, "scheduler_config"), _SCHEDULER, origin)
    yield from pick(dig(config, "parallel_config"), _PARALLEL, origin)
    yield from pick(dig(config, "kv_transfer_config"), [("kv_connector", "kv_connector")], origin)
    size = dig(config, "kv_transfer_config", "kv_connector_extra_config", "cpu_bytes_to_use")
    yield from pick({"size": size}, [("size", "l2_capacity_bytes")], f"{origin} (cpu_bytes_to_use)")


QUERIES = (
    FactQuery("/version", _version),
    FactQuery("/v1/models", _models),
    FactQuery("/server_info?config_format=json", _server_info),
)
