"""vLLM 0.8.5 to 0.33: one page -> one Snapshot a data-parallel rank (label `engine`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from diagnoser.engines import vllm_facts, vllm_names, vllm_pool
from diagnoser.engines.base import EngineAdapter, ServedNames
from diagnoser.engines.facts import flag, text
from diagnoser.engines.normalise import find, mark_cold
from diagnoser.engines.page import Found, Labels, Page, Reader, Scope
from diagnoser.engines.versions import Feature, Span, exact, infer
from diagnoser.engines.vllm_names import BORN_FIRST, INFO, LORA, QUEUE
from diagnoser.model import EngineId, Fact, PoolState, Reading, Scrape, Snapshot

ALL_RANKS = " (all ranks)"
TITLE = "vLLM"


def snapshots(scrape: Scrape, facts: Mapping[str, Fact]) -> tuple[Snapshot, ...]:
    """Every engine of one page. Nothing for a page without vLLM's own series (--disable-log-stats)."""
    page = Page(scrape.samples, "vllm:", "vllm_")
    if not any(page.named(metric) for metric in (*QUEUE, *BORN_FIRST)):
        return ()
    ranks = page.label_values((*QUEUE, *BORN_FIRST), "engine") or ["0"]
    span = version_span(page, facts)
    usages = [usage for rank in ranks if (usage := _raw_usage(page, rank)) is not None]
    return tuple(_snapshot(scrape, page, rank, ranks, span, usages) for rank in ranks)


def version_span(page: Page, facts: Mapping[str, Fact]) -> Span:
    """The release that wrote the page: as told, else the range its names and config labels leave open."""
    told = text(facts, "version")
    labels = {label for sample in page.named(INFO) for label in sample.labels}

    def has(feature: Feature) -> bool | None:
        if not feature.label:
            return page.has(feature.metric)
        return feature.label in labels if labels else None

    inferred = infer(vllm_names.FEATURES, has)
    if told is None:
        return inferred
    known = exact(told)
    return known if known.low else Span(inferred.low, inferred.high, told)


def _owned_by(rank: str) -> Callable[[Labels], bool]:
    """Is a series of this rank, or of none?"""
    return lambda labels: labels.get("engine", rank) == rank


def _raw_usage(page: Page, rank: str) -> float | None:
    """The reported usage of a rank if it is possible, for the check of block counts."""
    for alias in vllm_names.READINGS["l1_used_ratio"]:
        values = [sample.value for sample in page.named(alias.metric) if _owned_by(rank)(sample.labels)]
        if values:
            return max(values) if all(0 <= value <= 1 for value in values) else None
    return None


def _snapshot(
    scrape: Scrape, page: Page, rank: str, ranks: Sequence[str], span: Span, usages: Sequence[float]
) -> Snapshot:
    labels = vllm_facts.config_labels(page, rank)
    shape = vllm_pool.geometry(labels, ranks, usages, span)
    facts = vllm_facts.label_facts(labels, shape.blocks)
    scopes = {
        "rank": Scope(_owned_by(rank)),
        "server": Scope(lambda labels: True, ALL_RANKS if len(ranks) > 1 else ""),
    }
    reader = Reader(page, scopes, span, {"blocks": vllm_pool.number_label(labels, "block_size")})
    found = find(reader, vllm_names.READINGS, vllm_names.HISTOGRAMS, vllm_names.NEVER, TITLE)
    mark_cold(found, _is_cold(found), QUEUE[0], vllm_names.NEVER)
    pool = _pool(found, shape, flag(facts, "enable_prefix_caching"))
    _add_lora(page, scopes["server"], found)
    model = next(iter(page.label_values((*QUEUE, *BORN_FIRST), "model_name")), None)
    return Snapshot(
        EngineId("vllm", scrape.target.name, rank, span.text, model),
        scrape.at,
        found.readings,
        found.histograms,
        found.missing,
        pool,
        bad_series=tuple(found.bad),
        facts=facts,
    )


def _is_cold(found: Found) -> bool:
    """With several API servers the gauges are born with the first step; the counters are there from the start."""
    prompts = found.readings.get("prompt_tokens_total")
    gauges = ("running_requests", "waiting_requests", "l1_used_ratio")
    absent = not any(name in found.readings for name in gauges) and not any(bad.fatal for bad in found.bad)
    return absent and not (prompts and prompts.value)


def _pool(found: Found, shape: vllm_pool.Geometry, caching: bool | None) -> PoolState:
    """The pool, and the readings that follow from it; a usage ratio that counts the null block is corrected."""
    usage = found.readings.get("l1_used_ratio")
    pool = vllm_pool.pool(usage.value if usage else None, shape, caching, _ever_cached(found))
    if usage and shape.null_counted and shape.blocks:
        ratio = vllm_pool.used_ratio(usage.value, shape)
        found.readings["l1_used_ratio"] = Reading(ratio, f"{usage.series} (without the null block)")
    series = f"{usage.series} x {INFO}" if usage else INFO
    states = {"capacity": pool.capacity, "used": pool.used, "evictable": pool.evictable, "available": pool.available}
    for state, value in states.items():
        name = f"l1_{state}_tokens"
        found.missing[name] = pool.reason
        if isinstance(value, float):
            found.readings[name] = Reading(value, INFO if state == "capacity" else series)
            del found.missing[name]
    return pool


def _ever_cached(found: Found) -> float | None:
    """An upper bound of the tokens that can be cached: everything looked up and not found, plus everything generated.

    Unlike prompt_tokens, look-ups are counted at admission, so requests that died before their first token are in.
    What is recomputed after a preemption is in no counter, so the bound holds only while nothing was preempted.
    """
    preempted = found.readings.get("preemptions_total")
    kind = "prefix" if "prefix_queries_total" in found.readings else "prefix_retry"
    names = (f"{kind}_queries_total", f"{kind}_hits_total", "generation_tokens_total")
    parts = [found.readings[name].value for name in names if name in found.readings]
    if preempted is None or preempted.value > 0 or len(parts) < len(names):
        return None
    queries, hits, generated = parts
    return max(0.0, queries - hits) + generated


def _add_lora(page: Page, scope: Scope, found: Found) -> None:
    """LoRA state rides in labels; the value is the time of the update, so the newest series counts."""
    series = max(page.named(LORA), key=lambda sample: sample.value, default=None)
    slots = vllm_pool.number_label(series.labels, "max_lora") if series else None
    if series is None:
        for name in ("lora_waiting_adapters", "lora_pool_used_ratio"):
            found.missing[name] = f"not on this page: {LORA} (only with --enable-lora)"
        return
    found.missing.pop("lora_waiting_adapters", None)
    shown = LORA + scope.suffix
    found.readings["lora_waiting_adapters"] = Reading(_names(series.labels, "waiting_lora_adapters"), shown)
    if slots:
        found.missing.pop("lora_pool_used_ratio", None)
        ratio = min(1.0, _names(series.labels, "running_lora_adapters") / slots)
        found.readings["lora_pool_used_ratio"] = Reading(ratio, shown)


def _names(labels: Labels, label: str) -> float:
    return float(len({name for name in labels.get(label, "").split(",") if name.strip()}))


ADAPTER = EngineAdapter(
    family="vllm",
    title=TITLE,
    prefixes=("vllm:", "vllm_"),
    metrics=vllm_names.METRICS,
    snapshots=snapshots,
    fact_queries=vllm_facts.QUERIES,
    traits={
        "gauge_timing": "end_of_step",
        "running_gauge_slack": 0.0,
        "reserves_output": 0.0,
        "single_pool": 1.0,
        "prompt_buckets_reach": vllm_names.BUCKETS_REACH,
    },
    anchors=(*QUEUE, *BORN_FIRST),
    served=ServedNames(
        readings=vllm_names.READINGS,
        histograms=vllm_names.HISTOGRAMS,
        features=vllm_names.FEATURES,
        rank_label="engine",
        all_ranks_from="0.10",
        anchors=("vllm:num_requests_running",),
        info=INFO,
    ),
)
