"""What an engine adapter is, and the vocabulary every adapter translates into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from diagnoser.model import Fact, Scrape, Snapshot

READINGS: Mapping[str, str] = {
    # queue
    "running_requests": "requests in the running batch (gauge)",
    "waiting_requests": "all requests waiting for admission, whatever the reason (gauge)",
    "waiting_deferred_requests": "waiting requests parked on something outside the pool (gauge)",
    "grammar_queue_requests": "requests waiting for a grammar to compile, outside the waiting queue (gauge)",
    "pd_bootstrap_queue_requests": "prefill side of P/D: waiting for the handshake (gauge)",
    "pd_inflight_queue_requests": "prefill side of P/D: prefilled, KV transfer in flight, KV still held (gauge)",
    "pd_prealloc_queue_requests": "decode side of P/D: waiting for KV space to be pre-allocated (gauge)",
    "pd_transfer_queue_requests": "decode side of P/D: KV space held, transfer pending (gauge)",
    "kv_fetch_waiting_requests": "waiting for an async KV load to start (gauge)",
    "kv_fetch_in_progress_requests": "async KV load under way (gauge)",
    "kv_fetch_done_requests": "KV loaded into L1, still not running (gauge)",
    "lora_waiting_adapters": "adapters that waiting requests ask for (gauge)",
    "lora_pool_used_ratio": "active adapters / adapter slots (gauge)",
    "engine_awake": "1 awake, 0 asleep (gauge)",
    # device pool
    "l1_used_ratio": "share of the KV pool held by requests, evictable not counted (gauge)",
    "l1_used_tokens": "tokens held by requests (gauge)",
    "l1_evictable_tokens": "cached tokens that can be reclaimed (gauge)",
    "l1_available_tokens": "truly free tokens (gauge)",
    "l1_capacity_tokens": "size of the pool in tokens (gauge or label)",
    "swa_used_ratio": "sliding-window pool, share held (gauge)",
    "state_used_ratio": "mamba / SSM state pool, share of slots held (gauge)",
    "new_token_ratio": "SGLang: share of max_new_tokens that running requests reserve, as of the last prefill (gauge)",
    "session_held_tokens": "KV held by idle streaming sessions (gauge)",
    "decode_sum_tokens": "sum of sequence lengths of the decode batch (gauge)",
    # progress
    "preemptions_total": "running requests thrown out: vLLM preemptions, SGLang retractions (counter)",
    "prompt_tokens_total": "prompt tokens, added once per request (counter)",
    "generation_tokens_total": "generated tokens; vLLM per step, SGLang at finish (counter)",
    "finished_requests_total": "finished requests (counter)",
    "prefill_compute_tokens_total": "tokens really prefilled, re-prefill included (counter)",
    "prefill_effective_tokens_total": "tokens prefilled for first admissions only (counter)",
    "decode_tokens_total": "tokens decoded, counted every iteration (counter)",
    "prefill_passes_total": "forward passes that prefill (counter)",
    "decode_passes_total": "forward passes that decode (counter)",
    "generation_tokens_per_second": "the engine's own throughput gauge (gauge)",
    "prefix_queries_total": "tokens looked up in the local prefix cache (counter)",
    "prefix_hits_total": "tokens found there (counter)",
    "external_queries_total": "tokens looked up in the connector (counter)",
    "external_hits_total": "tokens found there (counter)",
    "evicted_tokens_total": "cached tokens dropped from L1 (counter)",
    "rejected_requests_total": "requests shed before the queue (counter)",
    "aborted_requests_total": "requests aborted (counter)",
    "scheduler_idle_seconds_total": "seconds without runnable or queued work (counter)",
    "process_start_seconds": "unix time the process started (gauge)",
}
HISTOGRAMS: Mapping[str, str] = {
    "ttft_seconds": "arrival to first token, survivors only",
    "queue_seconds": "arrival to first scheduling; vLLM observes it when the request finishes, SGLang at the first forward",
    "prefill_seconds": "first scheduling to first token",
    "decode_seconds": "first token to last token",
    "e2e_seconds": "arrival to last token",
    "inter_token_seconds": "gap between two output tokens",
    "prompt_tokens": "prompt length",
    "uncached_prompt_tokens": "prompt length without what the cache held",
    "generation_tokens": "output length",
    "max_tokens_requested": "the max_tokens the client asked for",
    "iteration_tokens": "prompt and output tokens of one engine step",
    "request_preemptions": "preemptions of one request",
}


@dataclass(frozen=True, slots=True)
class Alias:
    """One spelling of a reading: metric name on the page and the versions it holds for.

    `metric` is written with a colon; the underscore spelling is accepted by the adapter. `where` restricts labels
    (a value or a tuple of values). `take` joins several matching series of one rank: "max", "sum", "last".
    `since` / `until` are inclusive sampled releases, "" = unbounded. `scale` multiplies.
    """

    metric: str
    since: str = ""
    until: str = ""
    where: Mapping[str, str | tuple[str, ...]] | None = None
    take: str = "max"
    scale: float = 1.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class FactQuery:
    """One optional GET of a configuration path, relative to the engine's root, and how to read its JSON."""

    path: str
    read: Callable[[object, str], Iterable[Fact]]
    """(decoded JSON, origin) -> facts. Must not raise on any JSON."""


@dataclass(frozen=True, slots=True)
class EngineAdapter:
    """One engine family. A file diagnoser/engines/<name>.py with ADAPTER = EngineAdapter(...) is all a new engine needs."""

    family: str
    title: str
    """How people write it: "vLLM", "SGLang"."""
    prefixes: tuple[str, ...]
    """Metric name prefixes that identify the family, both spellings: ("vllm:", "vllm_")."""
    metrics: frozenset[str]
    """Every metric base name (colon spelling, without _bucket/_sum/_count) the adapter reads."""
    snapshots: Callable[[Scrape, Mapping[str, Fact]], tuple[Snapshot, ...]]
    """One page -> one Snapshot a data-parallel rank. The facts given (flags, HTTP, version) are known beforehand."""
    fact_queries: tuple[FactQuery, ...] = ()
