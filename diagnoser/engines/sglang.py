"""SGLang 0.4.6 to 0.5.23: one page -> one Snapshot a data-parallel rank."""

from __future__ import annotations

from collections.abc import Mapping

from diagnoser.engines import sglang_facts, sglang_names, sglang_pool
from diagnoser.engines.base import EngineAdapter, ServedNames
from diagnoser.engines.facts import text
from diagnoser.engines.normalise import find, mark_cold
from diagnoser.engines.page import Found, Page, Reader, Scope
from diagnoser.engines.sglang_names import CAPACITY, PASSES, QUEUE, RETRACTED
from diagnoser.engines.sglang_ranks import Leader, leaders, scopes
from diagnoser.engines.versions import Feature, Span, exact, infer
from diagnoser.model import EngineId, Fact, PoolState, Reading, Scrape, Snapshot

TITLE = "SGLang"
_UNBORN = " (not born yet)"


def snapshots(scrape: Scrape, facts: Mapping[str, Fact]) -> tuple[Snapshot, ...]:
    """Every rank of one page. Nothing for a page without SGLang's series."""
    page = Page(scrape.samples, "sglang:", "sglang_")
    if not any(page.has(metric) for metric in sglang_names.METRICS):
        return ()
    span = version_span(page, facts)
    found = leaders(page) or (Leader(None, None, None),)
    return tuple(_snapshot(scrape, page, leader, len(found), span) for leader in found)


def version_span(page: Page, facts: Mapping[str, Fact]) -> Span:
    """The release that wrote the page: as told, else the range its names leave open."""

    def has(feature: Feature) -> bool | None:
        return page.has(feature.metric)

    told = text(facts, "version")
    inferred = infer(sglang_names.FEATURES, has)
    if told is None:
        return inferred
    known = exact(told)
    return known if known.low else Span(inferred.low, inferred.high, told)


def _snapshot(scrape: Scrape, page: Page, leader: Leader, ranks: int, span: Span) -> Snapshot:
    own = scopes(page, leader, ranks)
    read = sglang_pool.reader(page, own["rank"])
    found = find(Reader(page, own, span), sglang_names.READINGS, sglang_names.HISTOGRAMS, sglang_names.NEVER, TITLE)
    cold = _is_cold(page, own["rank"], found, ranks)
    mark_cold(found, cold, QUEUE[0], sglang_names.NEVER)
    if not cold:
        _count_unborn(page, own["rank"], span, found)
    pool = _pool(page, read, found, cold)
    model = next(iter(page.label_values((*QUEUE, CAPACITY), "model_name")), None)
    return Snapshot(
        EngineId("sglang", scrape.target.name, leader.rank, span.text, model),
        scrape.at,
        found.readings,
        found.histograms,
        found.missing,
        pool,
        sglang_pool.other_pools(read),
        bad_series=tuple(found.bad),
        facts=sglang_facts.page_facts(page, read),
    )


def _is_cold(page: Page, scope: Scope, found: Found, ranks: int) -> bool:
    """No usage or queue gauge of the rank yet, and no trace of a request (a page may merely be cut down)."""
    if any(scope.mine(sample.labels) for metric in QUEUE for sample in page.named(metric)):
        return False
    waited, finished = found.histograms.get("queue_seconds"), found.readings.get("finished_requests_total")
    return not (waited and waited.count) and (ranks > 1 or not (finished and finished.value))


def _count_unborn(page: Page, scope: Scope, span: Span, found: Found) -> None:
    """Counters of a running engine that are born with their first event: absent is 0 where the version has them."""
    if "preemptions_total" not in found.readings and span.inside("0.5.7", ""):
        found.readings["preemptions_total"] = Reading(0.0, RETRACTED + _UNBORN)
        found.missing.pop("preemptions_total", None)
    modes = {sample.labels.get("mode") for sample in page.named(PASSES) if scope.mine(sample.labels)}
    if not modes:
        return
    for name in ("prefill_passes_total", "decode_passes_total"):
        if name not in found.readings and (span.inside("0.5.10", "") or modes.intersection(sglang_names.PREFILL_MODES)):
            found.readings[name] = Reading(0.0, PASSES + _UNBORN)
            found.missing.pop(name, None)


def _pool(page: Page, read: sglang_pool.Read, found: Found, cold: bool) -> PoolState:
    """The pool; a rejected usage leaves it unknown, because used and usage are one number."""
    ratio = found.readings.get("l1_used_ratio")
    pool, bad = sglang_pool.kv_pool(page, read, ratio.value if ratio else None, cold)
    found.bad.extend(bad)
    if not cold and ratio is None:
        pool = PoolState(pool.capacity, reason=found.missing["l1_used_ratio"])
    if pool.capacity is not None:
        series = CAPACITY if page.named(CAPACITY) else "sglang:num_used_tokens / sglang:token_usage"
        found.readings["l1_capacity_tokens"] = Reading(pool.capacity, series)
        found.missing.pop("l1_capacity_tokens", None)
    elif not cold:
        found.missing["l1_capacity_tokens"] = pool.reason
    return pool


ADAPTER = EngineAdapter(
    family="sglang",
    title=TITLE,
    prefixes=("sglang:", "sglang_"),
    metrics=sglang_names.METRICS,
    snapshots=snapshots,
    fact_queries=sglang_facts.QUERIES,
    # A prefill report leaves out the batch it admits (metrics_reporter.py:849): 7 of 8 slots with all 8 taken.
    traits={
        "gauge_timing": "report",
        "running_gauge_slack": 1.0,
        "reserves_output": 1.0,
        "queue_time_at_admission": 1.0,
        "born_late": 1.0,
    },
    anchors=(*QUEUE, CAPACITY),
    served=ServedNames(
        readings={**sglang_names.READINGS, **sglang_names.SERVED},
        histograms=sglang_names.HISTOGRAMS,
        features=sglang_names.FEATURES,
        rank_label="dp_rank",
        anchors=("sglang:num_running_reqs", CAPACITY),
        matchers={"priority": ""},
        copies=("tp_rank", "pp_rank", "moe_ep_rank", "attn_tp_rank", "attn_cp_rank"),
        parts=("mode",),
        unborn={"preemptions_total": "0.5.7", "prefill_passes_total": "0.5.10", "decode_passes_total": "0.5.10"},
    ),
)
