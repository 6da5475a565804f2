"""vLLM's names by release: aliases of every reading, and the features that tell releases apart.

Source: vllm/v1/metrics/loggers.py and vllm/config/cache.py of 0.8.5 to 0.32.0 (names of the sampled releases).
Counters carry `_total` on the wire. `vllm:iteration_tokens_total` is a histogram. Labels: engine (the data-parallel
rank), model_name; `pid` on gauges that lack a multiprocess mode.
"""

from __future__ import annotations

from collections.abc import Mapping

from diagnoser.engines.base import Alias
from diagnoser.engines.versions import Feature

INFO = "vllm:cache_config_info"
QUEUE = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
)
BORN_FIRST = ("vllm:num_preemptions_total", "vllm:prompt_tokens_total")
LORA = "vllm:lora_requests_info"
BUCKETS_REACH = 2.5
"""Edges of vllm:request_prompt_tokens are 1, 2, 5, 10, ... up to max_model_len, so the next one, at most 2.5 times the
last, is beyond it (build_1_2_5_buckets, vllm/v1/metrics/buckets.py).
"""

_RETRIES = "up to 0.26 it counts every retry of a blocked head again; which release this is must be known: fact version"
_ONE_SERIES = {"pid": ""}
"""Of two names for one gauge, that which is not split by process: the others keep what a process last saw."""
_STAGE = "vllm:num_requests_kv_fetch_by_stage"
_FETCH = "only where the KV connector is a consumer"


def _stage(stage: str) -> tuple[Alias, ...]:
    return (Alias(_STAGE, "0.32", where={"stage": stage}, note=_FETCH),)


def _source(source: str) -> tuple[Alias, ...]:
    return (Alias("vllm:prompt_tokens_by_source_total", "0.16", where={"source": source}),)


READINGS: Mapping[str, tuple[Alias, ...]] = {
    "running_requests": (Alias("vllm:num_requests_running"),),
    "waiting_requests": (Alias("vllm:num_requests_waiting"),),
    "waiting_deferred_requests": (
        Alias("vllm:num_requests_waiting_by_reason", "0.20.2", where={"reason": "deferred"}),
    ),
    "kv_fetch_waiting_requests": _stage("waiting_to_start"),
    "kv_fetch_in_progress_requests": _stage("in_progress"),
    "kv_fetch_done_requests": _stage("completed_waiting"),
    "engine_awake": (Alias("vllm:engine_sleep_state", "0.12", where={"sleep_state": "awake"}),),
    "l1_used_ratio": (
        Alias("vllm:kv_cache_usage_perc", "0.9.2", where=_ONE_SERIES),
        Alias("vllm:gpu_cache_usage_perc", until="0.11", where=_ONE_SERIES),
        Alias("vllm:kv_cache_usage_perc", "0.9.2"),
        Alias("vllm:gpu_cache_usage_perc", until="0.11"),
    ),
    "preemptions_total": (Alias("vllm:num_preemptions_total"),),
    "prompt_tokens_total": (Alias("vllm:prompt_tokens_total"),),
    "generation_tokens_total": (Alias("vllm:generation_tokens_total"),),
    "decode_tokens_total": (Alias("vllm:generation_tokens_total"),),
    "finished_requests_total": (Alias("vllm:request_success_total", take="sum"),),
    "prefill_effective_tokens_total": _source("local_compute"),
    "prefix_queries_total": (Alias("vllm:prefix_cache_queries_total", "0.27", holds="proven", note=_RETRIES),),
    "prefix_hits_total": (Alias("vllm:prefix_cache_hits_total", "0.27", holds="proven", note=_RETRIES),),
    "prefix_retry_queries_total": (
        Alias("vllm:prefix_cache_queries_total", "0.9.2", "0.26", holds="possible"),
        Alias("vllm:gpu_prefix_cache_queries_total", until="0.8.5", unit="blocks", holds="possible"),
    ),
    "prefix_retry_hits_total": (
        Alias("vllm:prefix_cache_hits_total", "0.9.2", "0.26", holds="possible"),
        Alias("vllm:gpu_prefix_cache_hits_total", until="0.8.5", unit="blocks", holds="possible"),
    ),
    "external_queries_total": (Alias("vllm:external_prefix_cache_queries_total", "0.12"),),
    "external_hits_total": (Alias("vllm:external_prefix_cache_hits_total", "0.12"),),
    "rejected_requests_total": (Alias("vllm:admission_rejections_total", "0.32", take="sum", scope="server"),),
    "process_start_seconds": (
        Alias("process_start_time_seconds", scope="server", note="only where one process serves the API"),
    ),
}
NEVER: Mapping[str, str] = {
    "prefill_compute_tokens_total": "no token counter of vLLM contains what is recomputed after a preemption",
    "aborted_requests_total": 'vLLM does not count client aborts (finished_reason="abort" stays 0)',
    "prefill_passes_total": "vLLM does not count forward passes; the iteration_tokens histogram counts steps",
    "decode_passes_total": "vLLM does not count forward passes; the iteration_tokens histogram counts steps",
    "evicted_tokens_total": "vLLM counts no evictions (kv_block_lifetime_seconds samples them with --kv-cache-metrics)",
    "grammar_queue_requests": "vLLM counts requests that wait for a grammar as deferred",
}
HISTOGRAMS: Mapping[str, tuple[Alias, ...]] = {
    "ttft_seconds": (Alias("vllm:time_to_first_token_seconds"),),
    "queue_seconds": (Alias("vllm:request_queue_time_seconds"),),
    "prefill_seconds": (Alias("vllm:request_prefill_time_seconds"),),
    "decode_seconds": (Alias("vllm:request_decode_time_seconds"),),
    "e2e_seconds": (Alias("vllm:e2e_request_latency_seconds"),),
    "inter_token_seconds": (
        Alias("vllm:inter_token_latency_seconds", "0.10.2"),
        Alias("vllm:time_per_output_token_seconds", until="0.14.1"),
    ),
    "prompt_tokens": (Alias("vllm:request_prompt_tokens"),),
    "uncached_prompt_tokens": (Alias("vllm:request_prefill_kv_computed_tokens", "0.13"),),
    "generation_tokens": (Alias("vllm:request_generation_tokens"),),
    "max_tokens_requested": (Alias("vllm:request_params_max_tokens"),),
    "iteration_tokens": (Alias("vllm:iteration_tokens_total"),),
    "request_preemptions": (Alias("vllm:request_num_preemptions", "0.30"),),
}
FEATURES: tuple[Feature, ...] = (
    Feature(INFO, "0.9", "0.9.2", label="engine"),
    Feature("vllm:kv_cache_usage_perc", "0.9", "0.9.2"),
    Feature("vllm:gpu_cache_usage_perc", "", None, gone="0.12"),
    Feature(INFO, "0.9.3", "0.10", label="mamba_page_size_padded"),
    Feature("vllm:inter_token_latency_seconds", "0.10.1", "0.10.2"),
    Feature(INFO, "0.10.3", "0.11", label="kv_sharing_fast_prefill"),
    Feature(INFO, "0.11.1", "0.12", label="kv_offloading_size"),
    Feature("vllm:external_prefix_cache_queries_total", "0.11.1", "0.12"),
    Feature("vllm:request_prefill_kv_computed_tokens", "0.12.1", "0.13"),
    Feature(INFO, "0.13.1", "0.15", label="mamba_cache_mode"),
    Feature("vllm:prompt_tokens_by_source_total", "0.15.1", "0.16"),
    Feature(INFO, "0.16.1", "0.18", label="_block_size_resolved"),
    Feature(INFO, "0.18.1", "0.19", label="kv_cache_dtype_skip_layers"),
    Feature("vllm:num_requests_waiting_by_reason", "0.19.1", "0.20.2"),
    Feature(INFO, "0.19.1", "0.21", label="user_specified_mamba_block_size", gone="0.32"),
    Feature(INFO, "0.23.1", "0.24", label="kv_cache_size_tokens"),
    Feature(INFO, "0.24.1", "0.25", label="skip_page_size_padded"),
    Feature(INFO, "0.25.1", "0.26", label="prefix_match_unit"),
    Feature(INFO, "", None, label="calculate_kv_scales", gone="0.28"),
    Feature(INFO, "0.26.1", "0.28", label="replayssm_buffer_len"),
    Feature(INFO, "0.28.1", "0.29", label="prefix_cache_retention_interval"),
    Feature("vllm:request_num_preemptions", "0.29.1", "0.30"),
    Feature(INFO, "0.30.1", "0.31", label="effective_attention_block_size"),
    Feature("vllm:admission_rejections_total", "0.31.1", "0.32"),
)
"""Oldest first. Absent upper bounds belong to names that a later release removed: their absence proves nothing here."""
METRICS: frozenset[str] = frozenset(
    [alias.metric for table in (READINGS, HISTOGRAMS) for aliases in table.values() for alias in aliases]
    + [feature.metric for feature in FEATURES]
    + [INFO, LORA, *QUEUE]
)
