"""SGLang's names by release: aliases of every reading, and the features that tell releases apart.

Source: sglang/srt/observability/metrics_collector.py of 0.5.23 and its predecessors (23 scanned releases, 0.4.6 on).
Scopes: "rank" = scheduler series of the reporting rank; "server" = series of the HTTP process, without a rank;
"alone" = the same, but no stand-in for a rank's own series where there are several ranks;
"cache" = radix-cache counters, whose rank labels came with 0.5.21 and stay 0 under plain data parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping

from diagnoser.engines.base import Alias
from diagnoser.engines.versions import Feature

QUEUE = ("sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage", "sglang:num_used_tokens")
CAPACITY = "sglang:max_total_num_tokens"
RETRACTED = "sglang:num_retracted_requests_total"
PASSES = "sglang:cuda_graph_passes_total"
INFO = "sglang:cache_config_info"
PREFILL_MODES = ("prefill_cuda_graph", "prefill_none")
DECODE_MODES = ("decode_cuda_graph", "decode_none")
POOLS = tuple(
    f"sglang:{pool}_{part}_tokens" for pool in ("swa", "mamba") for part in ("used", "evictable", "available")
)
CONSTANTS = ("sglang:page_size", "sglang:context_len", "sglang:max_total_num_tokens_swa", INFO)

_EFFECTIVE = "sglang:prefill_effective_tokens_total"
_LOOKED_UP = ("input", "device_hit", "host_hit", "storage_hit")
_AT_FINISH = "counted when the request finishes, for the whole server"
_HISTOGRAM = "up to 0.5.10 only with --collect-tokens-histogram"


def _rank(metric: str, since: str = "", until: str = "", note: str = "") -> tuple[Alias, ...]:
    return (Alias(f"sglang:{metric}", since, until, note=note),)


def _server(metric: str, since: str = "", note: str = "") -> tuple[Alias, ...]:
    return (Alias(f"sglang:{metric}", since, take="sum", scope="server", note=note),)


def _modes(metric: str, since: str, modes: str | tuple[str, ...], note: str = "") -> Alias:
    return Alias(metric, since, where={"mode": modes}, take="sum", note=note)


READINGS: Mapping[str, tuple[Alias, ...]] = {
    "running_requests": _rank("num_running_reqs"),
    "waiting_requests": _rank("num_queue_reqs"),
    "grammar_queue_requests": _rank("num_grammar_queue_reqs", "0.4.10"),
    "pd_bootstrap_queue_requests": (
        Alias("sglang:num_prefill_bootstrap_queue_reqs", "0.5.12"),
        Alias("sglang:num_prefill_prealloc_queue_reqs", "0.4.10", "0.5.11"),
    ),
    "pd_inflight_queue_requests": (
        Alias("sglang:num_prefill_inflight_queue_reqs", "0.5.2"),
        Alias("sglang:num_prefill_infight_queue_reqs", "0.4.10", "0.4.10"),
    ),
    "pd_prealloc_queue_requests": _rank("num_decode_prealloc_queue_reqs", "0.4.10"),
    "pd_transfer_queue_requests": _rank("num_decode_transfer_queue_reqs", "0.4.10"),
    "lora_pool_used_ratio": _rank("lora_pool_utilization", "0.5.7", note="only with LoRA"),
    "l1_used_ratio": (Alias("sglang:full_token_usage", "0.5.10"), Alias("sglang:token_usage")),
    "l1_used_tokens": (Alias("sglang:kv_used_tokens", "0.5.11"), Alias("sglang:num_used_tokens")),
    "l1_evictable_tokens": _rank("kv_evictable_tokens", "0.5.11"),
    "l1_available_tokens": _rank("kv_available_tokens", "0.5.11"),
    "swa_used_ratio": _rank("swa_token_usage", "0.5.2"),
    "state_used_ratio": _rank("mamba_usage", "0.5.5"),
    "new_token_ratio": _rank("new_token_ratio", "0.5.6"),
    "session_held_tokens": _rank(
        "streaming_session_held_tokens", "0.5.11", note="only with --enable-streaming-session"
    ),
    "decode_sum_tokens": _rank("decode_sum_seq_lens", "0.5.7"),
    "preempted_last_event_requests": _rank("num_retracted_reqs", "0.5.2"),
    "preemptions_total": (
        Alias(RETRACTED, "0.5.7"),
        Alias("sglang:total_retracted_reqs", "0.4.10", "0.5.2"),
        Alias("sglang:num_retractions_sum", "0.5.5", "0.5.6", holds="possible", scope="alone", note=_AT_FINISH),
    ),
    "preempted_prompt_tokens_total": _rank("num_retracted_input_tokens_total", "0.5.7"),
    "preempted_output_tokens_total": _rank("num_retracted_output_tokens_total", "0.5.7"),
    "prompt_tokens_total": _server("prompt_tokens_total"),
    "generation_tokens_total": _server("generation_tokens_total"),
    "finished_requests_total": _server("num_requests_total"),
    "aborted_requests_total": _server("num_aborted_requests_total", "0.4.10", "born with the first abort"),
    "prefill_compute_tokens_total": (_modes("sglang:realtime_tokens_total", "0.5.7", "prefill_compute"),),
    "decode_tokens_total": (_modes("sglang:realtime_tokens_total", "0.5.7", "decode"),),
    "prefill_effective_tokens_total": (_modes(_EFFECTIVE, "0.5.18", "input"),),
    "prefill_passes_total": (_modes(PASSES, "0.5.10", PREFILL_MODES),),
    "decode_passes_total": (_modes(PASSES, "0.5.7", DECODE_MODES),),
    "generation_tokens_per_second": _rank("gen_throughput"),
    "prefix_queries_total": (
        _modes(_EFFECTIVE, "0.5.18", _LOOKED_UP),
        Alias("sglang:prompt_tokens_total", take="sum", scope="server"),
    ),
    "prefix_hits_total": (
        _modes(_EFFECTIVE, "0.5.18", "device_hit"),
        Alias("sglang:cached_tokens_total", "0.5.9", where={"cache_source": "device"}, take="sum", scope="server"),
        Alias("sglang:cached_tokens_total", until="0.5.8", where={"cache_source": ""}, take="sum", scope="server"),
    ),
    "external_queries_total": (_modes(_EFFECTIVE, "0.5.18", ("input", "host_hit", "storage_hit")),),
    "external_hits_total": (_modes(_EFFECTIVE, "0.5.18", ("host_hit", "storage_hit")),),
    "evicted_tokens_total": (Alias("sglang:evicted_tokens_total", "0.5.6", take="sum", scope="cache"),),
    "scheduler_idle_seconds_total": _rank("scheduler_idle_seconds_total", "0.5.20"),
    "scheduler_loop_seconds_total": (Alias("sglang:scheduler_stage_seconds_total", "0.5.20", take="sum"),),
}
SERVED: Mapping[str, tuple[Alias, ...]] = {
    "l1_capacity_tokens": _rank("max_total_num_tokens", "0.5.6"),
    "page_size": _rank("page_size"),
    "context_len": _rank("context_len"),
}
"""Constants of a page that a metrics server is asked for like gauges."""
NEVER: Mapping[str, str] = {
    "waiting_deferred_requests": "SGLang has no such state: grammar and P/D waits have queues of their own",
    "process_start_seconds": "SGLang's pages come from several processes and carry no start time",
    "prefix_retry_queries_total": "SGLang counts a look-up once, at admission",
    "prefix_retry_hits_total": "SGLang counts a look-up once, at admission",
    "rejected_requests_total": "SGLang counts no rejected requests (http_responses_total has the 503 answers)",
    "prefill_seconds": "SGLang has no such histogram for a whole prefill",
    "decode_seconds": "SGLang has no such histogram",
    "max_tokens_requested": "SGLang does not export what clients asked for",
    "iteration_tokens": "SGLang has no such histogram; tokens and passes are counted",
}
HISTOGRAMS: Mapping[str, tuple[Alias, ...]] = {
    "ttft_seconds": _server("time_to_first_token_seconds"),
    "queue_seconds": (Alias("sglang:queue_time_seconds", "0.5.4"), Alias("sglang:queue_time_s", "0.5.2", "0.5.2")),
    "e2e_seconds": _server("e2e_request_latency_seconds"),
    "inter_token_seconds": _server("inter_token_latency_seconds"),
    "prompt_tokens": _server("prompt_tokens_histogram", "0.4.10", _HISTOGRAM),
    "uncached_prompt_tokens": _server("uncached_prompt_tokens_histogram", "0.5.12"),
    "generation_tokens": _server("generation_tokens_histogram", "0.4.10", _HISTOGRAM),
    "request_preemptions": (Alias("sglang:num_retractions", "0.5.5", "0.5.10", take="sum", scope="server"),),
}
FEATURES: tuple[Feature, ...] = (
    Feature("sglang:num_grammar_queue_reqs", "0.4.7", "0.4.10"),
    Feature("sglang:total_retracted_reqs", "0.4.7", None, gone="0.5.4"),
    Feature("sglang:swa_token_usage", "0.4.11", "0.5.2"),
    Feature("sglang:is_cuda_graph", "0.5.3", "0.5.4"),
    Feature("sglang:num_retracted_reqs", "0.4.11", None),
    Feature("sglang:mamba_usage", "0.5.5", "0.5.5"),
    Feature("sglang:num_retractions", "0.5.5", None, gone="0.5.11"),
    Feature("sglang:new_token_ratio", "0.5.6", "0.5.6"),
    Feature(CAPACITY, "0.5.6", None),
    Feature("sglang:decode_sum_seq_lens", "0.5.7", "0.5.7"),
    Feature(RETRACTED, "0.5.7", None),
    Feature(INFO, "0.5.9", None, gone="0.5.11"),
    Feature("sglang:full_token_usage", "0.5.10", "0.5.10"),
    Feature("sglang:num_prefill_prealloc_queue_reqs", "0.4.7", None, gone="0.5.12"),
    Feature("sglang:kv_used_tokens", "0.5.11", "0.5.11"),
    Feature("sglang:swa_used_tokens", "0.5.12", "0.5.12"),
    Feature("sglang:spec_cap_length", "0.5.16", "0.5.16"),
    Feature("sglang:kv_cache_memory_usage_gb", "0.5.17", "0.5.17"),
    Feature(_EFFECTIVE, "0.5.18", "0.5.18"),
    Feature("sglang:scheduler_idle_seconds_total", "0.5.20", "0.5.20"),
    Feature("sglang:num_decode_host_receive_queue_reqs", "0.5.21", "0.5.21"),
    Feature("sglang:num_decode_deferred_kv_release_reqs", "0.5.22", "0.5.22"),
    Feature("sglang:prealloc_full_token_usage", "0.5.23", "0.5.23"),
)
"""Oldest first. Series that a feature or an event brings are not in it: their absence tells nothing."""
METRICS: frozenset[str] = frozenset(
    [alias.metric for table in (READINGS, HISTOGRAMS) for aliases in table.values() for alias in aliases]
    + [feature.metric for feature in FEATURES]
    + [CAPACITY, *CONSTANTS, *POOLS, *QUEUE]
)
