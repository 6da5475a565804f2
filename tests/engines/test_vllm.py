"""vLLM: renames, the null block, processes, ranks, and what cannot be true."""

from __future__ import annotations

import math

import pytest

from diagnoser.model import Range

CONFIG = (
    'vllm:cache_config_info{{engine="{rank}",block_size="16",enable_prefix_caching="{caching}",'
    '{extra}num_gpu_blocks="{blocks}"}} 1'
)


def _page(usage: float = 0.5, blocks: int = 101, rank: str = "0", caching: str = "True", extra: str = "") -> str:
    labels = f'{{engine="{rank}",model_name="m"}}'
    lines = [
        f"vllm:num_requests_running{labels} 3",
        f"vllm:num_requests_waiting{labels} 1",
        f"vllm:kv_cache_usage_perc{labels} {usage}",
        f"vllm:num_preemptions_total{labels} 0",
        CONFIG.format(rank=rank, caching=caching, extra=extra, blocks=blocks),
    ]
    return "\n".join(lines)


def test_null_block_is_not_usable(page) -> None:
    (old,), (new,) = page("vllm-0.10.0"), page("vllm-0.12.0")
    for snapshot in (old, new):
        assert snapshot.pool.capacity == 2688 * 16
        assert snapshot.pool.used == 2648 * 16
        assert snapshot.value("l1_used_ratio") == pytest.approx(2648 / 2688)
    assert "null block" in old.readings["l1_used_ratio"].series


def test_an_idle_engine_up_to_0_10_0_holds_nothing(text) -> None:
    (snapshot,) = text(_page(usage=1 / 101), version="0.10.0")
    assert snapshot.value("l1_used_ratio") == pytest.approx(0, abs=1e-12)
    assert snapshot.pool.used == 0


def test_the_first_name_wins_and_usage_is_never_summed(page) -> None:
    (snapshot,) = page("vllm-0.10.0")
    assert snapshot.value("l1_used_ratio") < 1


def test_one_series_per_process_is_marked(page) -> None:
    for snapshot in page("vllm-0.11.0-dp2-2api"):
        (bad,) = snapshot.bad_series
        assert bad.series == "vllm:kv_cache_usage_perc"
        assert bad.reason.startswith("one series per process")
        assert not bad.fatal
    for snapshot in page("vllm-0.10.0-dp2-2api"):
        (bad,) = snapshot.bad_series
        assert "gpu_cache_usage_perc is used" in bad.reason
    assert all(not snapshot.bad_series for snapshot in page("vllm-0.32.0-dp2-2api"))


def test_prefix_counters_of_0_8_5_are_blocks(page) -> None:
    (snapshot,) = page("vllm-0.8.5")
    assert snapshot.value("prefix_retry_queries_total") == 83519 * 16
    assert "prefix_queries_total" in snapshot.missing


def test_prefix_counters_up_to_0_26_count_retries(page) -> None:
    (old,), (new,) = page("vllm-0.26.0", version="0.26.0"), page("vllm-0.32.0")
    assert old.value("prefix_queries_total") is None
    assert "counts every retry" in old.missing["prefix_queries_total"]
    assert old.value("prefix_retry_queries_total") > 5 * old.value("prompt_tokens_total")
    assert new.value("prefix_queries_total") == new.value("prompt_tokens_total")
    assert new.value("prefix_retry_queries_total") is None


def test_the_version_decides_where_names_do_not(page) -> None:
    (inferred,), (told,) = page("vllm-0.26.0"), page("vllm-0.26.0", version="0.27.1")
    assert inferred.value("prefix_queries_total") is None
    assert told.value("prefix_queries_total") is not None


def test_num_gpu_blocks_is_a_sum_over_engines(page) -> None:
    for snapshot in page("vllm-0.32.0-m-dp2"):
        assert snapshot.pool.capacity == 255 * 32
        assert snapshot.facts["num_gpu_blocks"].value == 256
        assert snapshot.facts["kv_cache_size_tokens"].value == 8192


@pytest.mark.parametrize("name", ["vllm-0.8.5-dp2", "vllm-0.9.2-dp2"])
def test_only_the_last_engine_is_visible_up_to_0_9_2(page, name: str) -> None:
    (snapshot,) = page(name)
    assert snapshot.engine.rank == "1"
    assert snapshot.pool.capacity == 2688 * 16


def test_an_external_load_balancer_shows_one_rank_with_its_own_blocks(text) -> None:
    (snapshot,) = text(_page(usage=50 / 511, blocks=512, rank="3"), version="0.20.2")
    assert snapshot.pool.capacity == 511 * 16
    assert snapshot.pool.used == 50 * 16


def test_cold_front_ends_show_counters_before_gauges(page) -> None:
    for snapshot in page("vllm-0.32.0-m-dp2", poll=0):
        assert snapshot.value("cold_engine") == 1
        assert "not born yet" in snapshot.missing["waiting_requests"]
    assert all(snapshot.value("cold_engine") == 0 for snapshot in page("vllm-0.32.0-m-dp2"))


def test_prefix_caching_off_leaves_nothing_evictable(page) -> None:
    (snapshot,) = page("vllm-0.32.0-v-no-prefix-cache")
    pool = snapshot.pool
    assert pool.evictable == 0
    assert pool.used + pool.available == pool.capacity == 255 * 32


def test_evictable_is_bounded_by_all_that_was_ever_cached(text) -> None:
    counters = """
    vllm:prefix_cache_queries_total{engine="0"} 300
    vllm:prefix_cache_hits_total{engine="0"} 100
    vllm:generation_tokens_total{engine="0"} 20
    """
    (snapshot,) = text(_page(usage=0.5) + "\n" + counters, version="0.32.0")
    assert snapshot.pool.evictable == Range(0, 220)
    assert snapshot.pool.available == Range(800 - 220, 800)
    thrown_out = (_page(usage=0.5) + "\n" + counters).replace("preemptions_total{engine", "preemptions_total{x")
    (preempted,) = text(thrown_out + 'vllm:num_preemptions_total{engine="0"} 1', version="0.32.0")
    assert preempted.pool.evictable == Range(0, 800)


def test_a_hybrid_pool_is_kv_cache_size_tokens(text) -> None:
    (snapshot,) = text(_page(usage=0.25, extra='kv_cache_size_tokens="5000",'))
    assert snapshot.pool.capacity == 5000
    assert snapshot.pool.used == 1250
    assert "hybrid" in snapshot.pool.reason


def test_a_pool_without_num_gpu_blocks(text) -> None:
    body = _page(usage=0.5, extra='kv_cache_size_tokens="1600",').replace(
        'num_gpu_blocks="101"', 'num_gpu_blocks="None"'
    )
    (snapshot,) = text(body)
    assert snapshot.pool.capacity == 1600
    (unknown,) = text(_page().replace('num_gpu_blocks="101"', 'num_gpu_blocks="None"'))
    assert unknown.pool.capacity is None
    assert unknown.pool.used is None
    assert "how large" in unknown.pool.reason


@pytest.mark.parametrize(("usage", "fatal"), [(-0.3875, True), (1.5, True), (math.nan, True), (1.01, False)])
def test_impossible_usage(text, usage: float, fatal: bool) -> None:
    (snapshot,) = text(_page(usage=usage))
    (bad,) = snapshot.bad_series
    assert bad.series == "vllm:kv_cache_usage_perc"
    assert bad.fatal is fatal
    if fatal:
        assert snapshot.value("l1_used_ratio") is None
        assert snapshot.missing["l1_used_ratio"].startswith("rejected")
        assert snapshot.pool.used is None
    else:
        assert snapshot.value("l1_used_ratio") == 1.0


def test_a_negative_queue_is_fatal(text) -> None:
    (snapshot,) = text(
        _page().replace('requests_waiting{engine="0",model_name="m"} 1', 'requests_waiting{engine="0"} -1')
    )
    assert [bad.fatal for bad in snapshot.bad_series] == [True]
    assert snapshot.value("waiting_requests") is None


def test_absence_says_which_of_three(page) -> None:
    (old,), (new,) = page("vllm-0.19.0"), page("vllm-0.32.0")
    assert old.missing["waiting_deferred_requests"].startswith("not in this version")
    assert "0.20.2" in old.missing["waiting_deferred_requests"]
    assert new.missing["prefix_retry_queries_total"].startswith("gone in this version")
    assert new.missing["kv_fetch_done_requests"].startswith("not on this page")


def test_both_spellings(page) -> None:
    (colon,), (underscore,) = page("vllm-0.32.0"), page("vllm-0.32.0-openmetrics")
    assert {name: reading.value for name, reading in colon.readings.items()} == {
        name: reading.value for name, reading in underscore.readings.items()
    }
    assert colon.histograms == underscore.histograms
    assert colon.pool == underscore.pool


def test_histograms_are_cumulative_and_end_at_infinity(page) -> None:
    (snapshot,) = page("vllm-0.32.0")
    ttft = snapshot.histograms["ttft_seconds"]
    assert ttft.edges[-1] == math.inf
    assert list(ttft.counts) == sorted(ttft.counts)
    assert ttft.count == 209
    assert ttft.sum == pytest.approx(995.479, abs=0.001)


def test_a_histogram_without_buckets_still_counts(text) -> None:
    body = 'vllm:time_to_first_token_seconds_count{engine="0"} 4\nvllm:time_to_first_token_seconds_sum{engine="0"} 6'
    (snapshot,) = text(_page() + "\n" + body)
    assert snapshot.histograms["ttft_seconds"].edges == (math.inf,)
    assert (snapshot.histograms["ttft_seconds"].count, snapshot.histograms["ttft_seconds"].sum) == (4, 6)


def test_lora(text) -> None:
    info = """
    vllm:lora_requests_info{max_lora="4",running_lora_adapters="a",waiting_lora_adapters="b,c"} 100
    vllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters="c"} 200
    """
    (snapshot,) = text(_page() + "\n" + info)
    assert snapshot.value("lora_waiting_adapters") == 1
    assert snapshot.value("lora_pool_used_ratio") == 0.5


def test_series_of_the_whole_server_are_marked(page) -> None:
    for snapshot in page("vllm-0.32.0-dp2"):
        assert snapshot.readings["rejected_requests_total"].series.endswith("(all ranks)")
    (alone,) = page("vllm-0.32.0")
    assert not alone.readings["rejected_requests_total"].series.endswith("(all ranks)")


def test_label_facts(page) -> None:
    (snapshot,) = page("vllm-0.32.0")
    facts = {name: fact.value for name, fact in snapshot.facts.items()}
    assert facts["block_size"] == 16
    assert facts["enable_prefix_caching"] is True
    assert facts["gpu_memory_utilization"] == 0.9
    assert facts["kv_cache_max_concurrency"] == pytest.approx(5.25, abs=0.01)
    assert "sliding_window" not in facts
    assert "l2_capacity_bytes" not in facts
    (offload,) = page("l2-vllm-offload-0.32.0-full")
    assert offload.facts["l2_capacity_bytes"].value == 16 * 2**30


def test_a_page_of_another_engine_gives_nothing(text) -> None:
    assert text("process_start_time_seconds 5\npython_info 1") == []


def test_a_full_cache_is_not_a_full_pool(page) -> None:
    (snapshot,) = page("vllm-0.32.0-g-prefix-full", poll=0)
    pool = snapshot.pool
    assert pool.used < 0.5 * pool.capacity
    assert isinstance(pool.evictable, Range)
    assert pool.evictable.high == pool.capacity - pool.used
