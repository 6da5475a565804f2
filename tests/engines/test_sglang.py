"""SGLang: ranks, priorities, series that are born late, and the pool by release."""

from __future__ import annotations

import math

import pytest

from diagnoser.model import Range

GAUGES = ("num_running_reqs", "num_queue_reqs", "token_usage", "num_used_tokens", "max_total_num_tokens")


def _page(
    values: tuple[float, ...] = (3, 1, 0.5, 500, 1000), labels: str = 'tp_rank="0",pp_rank="0"', more: str = ""
) -> str:
    lines = [f"sglang:{name}{{{labels}}} {value}" for name, value in zip(GAUGES, values, strict=True)]
    return "\n".join(lines) + "\n" + more


def test_tensor_parallel_ranks_are_not_added(page) -> None:
    (one,), (two,) = page("sglang-0.5.23"), page("sglang-0.5.23-tp2")
    for name in ("preemptions_total", "l1_capacity_tokens", "decode_passes_total", "prefill_passes_total"):
        assert one.value(name) == two.value(name)
    assert two.histograms["queue_seconds"].count == 209
    assert two.value("evicted_tokens_total") == 206100


@pytest.mark.parametrize("name", ["sglang-0.5.14-tp2", "sglang-0.5.9-tp2"])
def test_cache_counters_without_ranks_are_divided(page, name: str) -> None:
    (snapshot,) = page(name)
    assert snapshot.value("evicted_tokens_total") == 206100


def test_data_parallel_ranks(page) -> None:
    first, second = page("sglang-0.5.23-dp2")
    assert (first.engine.rank, second.engine.rank) == ("0", "1")
    assert first.value("preemptions_total") == 22
    assert second.value("preemptions_total") == 18
    assert first.value("prefill_passes_total") == 184
    assert second.value("prefill_passes_total") == 180
    assert first.histograms["ttft_seconds"] == second.histograms["ttft_seconds"]
    assert first.histograms["ttft_seconds"].series.endswith("(all ranks)")
    assert first.histograms["queue_seconds"].count == 209
    assert second.histograms["queue_seconds"].count == 204
    assert first.value("evicted_tokens_total") == 206100
    assert second.value("evicted_tokens_total") == 198900


def test_plain_replicas_merge_their_cache_counters(page) -> None:
    for snapshot in page("sglang-0.5.23-l-dp2"):
        assert snapshot.readings["evicted_tokens_total"].series.endswith("(all ranks)")


def test_the_leader_of_a_rank_may_have_any_tp_rank(text) -> None:
    body = _page((3, 1, 0.5, 500, 1000), 'dp_rank="0",tp_rank="0",pp_rank="0"')
    body += _page((9, 7, 0.9, 900, 1000), 'dp_rank="1",tp_rank="2",pp_rank="0"')
    body += 'sglang:max_total_num_tokens{dp_rank="1",tp_rank="3",pp_rank="0"} 1000\n'
    body += 'sglang:num_retracted_requests_total{dp_rank="1",tp_rank="2",pp_rank="0"} 4\n'
    body += 'sglang:num_retracted_requests_total{dp_rank="1",tp_rank="3",pp_rank="0"} 4\n'
    first, second = text(body)
    assert (first.value("running_requests"), second.value("running_requests")) == (3, 9)
    assert second.value("preemptions_total") == 4
    assert first.value("preemptions_total") == 0


def test_pipeline_stages_and_all_schedulers_repeat_one_number(text) -> None:
    body = "".join(
        _page((3, 1, 0.5, 500, 1000), f'tp_rank="{tp}",pp_rank="{pp}"') for tp in range(2) for pp in range(2)
    )
    (snapshot,) = text(body)
    assert snapshot.value("waiting_requests") == 1
    assert snapshot.pool.capacity == 1000


def test_priority_breakdown_is_not_added_to_the_total(page) -> None:
    (snapshot,) = page("sglang-0.5.23-m-priority")
    assert snapshot.value("running_requests") == 12
    assert snapshot.value("waiting_requests") == 48
    assert snapshot.histograms["queue_seconds"].count == 65
    assert snapshot.histograms["ttft_seconds"].count == 1 + 10 + 22 + 32
    assert snapshot.value("finished_requests_total") == 1 + 16 + 26 + 10


def test_streaming_and_other_requests_are_added(text) -> None:
    more = """sglang:num_requests_total{is_streaming="true"} 4
    sglang:num_requests_total{is_streaming="false"} 3
    """
    (snapshot,) = text(_page(more=more))
    assert snapshot.value("finished_requests_total") == 7


def test_exact_pool(page) -> None:
    (snapshot,) = page("sglang-0.5.23")
    pool = snapshot.pool
    assert (pool.capacity, pool.used, pool.evictable, pool.available) == (43008, 42363, 445, 200)
    assert not snapshot.bad_series
    assert snapshot.other_pools == ()


def test_all_token_gauges_are_tokens_whatever_the_page_size(page) -> None:
    (snapshot,) = page("sglang-0.5.23-o-page16-long-interval")
    assert snapshot.facts["page_size"].value == 16
    assert not snapshot.bad_series


def test_the_sum_is_the_capacity_where_the_gauge_differs(text) -> None:
    more = """sglang:kv_used_tokens{tp_rank="0"} 500
    sglang:kv_evictable_tokens{tp_rank="0"} 900
    sglang:kv_available_tokens{tp_rank="0"} 600
    """
    (snapshot,) = text(_page(more=more))
    assert snapshot.pool.capacity == 2000
    (bad,) = snapshot.bad_series
    assert bad.series == "sglang:max_total_num_tokens"
    assert not bad.fatal


def test_used_only_pool(page) -> None:
    (snapshot,) = page("sglang-0.5.6")
    assert snapshot.pool.used == 42363
    assert snapshot.pool.evictable == Range(0, 645)
    assert "0.5.11" in snapshot.pool.reason


def test_capacity_before_0_5_6_is_an_estimate(page) -> None:
    (exact,), (rounded,) = page("sglang-0.4.6"), page("sglang-0.5.2")
    assert exact.pool.capacity == pytest.approx(43008)
    assert rounded.pool.capacity == pytest.approx(43008, rel=0.006)
    assert "within 1 %" in rounded.pool.reason
    assert "rounded" not in exact.pool.reason


def test_no_estimate_from_a_low_rounded_ratio(text) -> None:
    (snapshot,) = text("\n".join(_page((1, 0, 0.02, 21, 0)).splitlines()[:-1]))
    assert snapshot.pool.capacity is None
    assert "0.5.6" in snapshot.missing["l1_capacity_tokens"]


def test_second_pools(text) -> None:
    more = "".join(f'sglang:swa_{part}_tokens{{tp_rank="0"}} {value}\n' for part, value in
                   (("used", 10), ("evictable", 20), ("available", 70)))  # fmt: skip
    more += "".join(f'sglang:mamba_{part}_tokens{{tp_rank="0"}} {value}\n' for part, value in
                    (("used", 3), ("evictable", 1), ("available", 4)))  # fmt: skip
    (snapshot,) = text(_page(more=more))
    swa, state = snapshot.other_pools
    assert (swa.name, swa.capacity, swa.used) == ("swa", 100, 10)
    assert (state.name, state.capacity) == ("state", 8)
    assert "slots" in state.reason


def test_cold_engine(page) -> None:
    (snapshot,) = page("sglang-0.5.23-a0-cold-no-request")
    assert snapshot.value("cold_engine") == 1
    assert snapshot.value("waiting_requests") is None
    assert "not born yet" in snapshot.missing["waiting_requests"]
    assert snapshot.pool.capacity == 8192
    assert snapshot.pool.used is None
    assert snapshot.value("preemptions_total") is None


def test_retractions_that_never_happened_are_zero(page) -> None:
    (snapshot,) = page("sglang-0.5.7", poll=0)
    assert snapshot.value("preemptions_total") == 0
    assert snapshot.readings["preemptions_total"].series.endswith("(not born yet)")
    (later,) = page("sglang-0.5.7")
    assert later.value("preemptions_total") == 22


def test_retractions_by_release(page) -> None:
    (none,), (gauge,), (finish,) = page("sglang-0.4.6"), page("sglang-0.5.2"), page("sglang-0.5.6")
    assert "0.5.7" in none.missing["preemptions_total"]
    assert gauge.readings["preemptions_total"].series == "sglang:total_retracted_reqs"
    assert finish.readings["preemptions_total"].value == finish.histograms["request_preemptions"].sum == 9
    (last,) = page("sglang-0.5.4-tp2")
    assert last.value("preemptions_total") is None
    assert last.value("preempted_last_event_requests") == 2
    assert all(rank.value("preemptions_total") is None for rank in page("sglang-0.5.6-dp2"))


def test_queue_renames(page) -> None:
    (first, _), (last,) = page("sglang-0.4.10-dp2"), page("sglang-0.5.23")
    assert first.readings["pd_bootstrap_queue_requests"].series == "sglang:num_prefill_prealloc_queue_reqs"
    assert last.readings["pd_bootstrap_queue_requests"].series == "sglang:num_prefill_bootstrap_queue_reqs"
    assert first.readings["pd_inflight_queue_requests"].series == "sglang:num_prefill_infight_queue_reqs"
    assert last.readings["pd_inflight_queue_requests"].series == "sglang:num_prefill_inflight_queue_reqs"


def test_passes_and_tokens(page) -> None:
    (snapshot,) = page("sglang-0.5.23")
    assert snapshot.value("prefill_passes_total") == 184
    assert snapshot.value("decode_passes_total") == 2025
    assert snapshot.value("prefill_compute_tokens_total") == 193044
    assert snapshot.value("prefill_effective_tokens_total") == 170491
    assert snapshot.value("decode_tokens_total") == 69267
    assert snapshot.value("prefix_queries_total") == 170491 + 31488
    assert snapshot.value("prefix_hits_total") == 31488
    (old,) = page("sglang-0.5.9-tp2")
    assert "0.5.10" in old.missing["prefill_passes_total"]


def test_an_engine_that_only_prefills_has_no_decode_passes(text) -> None:
    more = (
        'sglang:cuda_graph_passes_total{tp_rank="0",mode="prefill_none"} 5\nsglang:decode_sum_seq_lens{tp_rank="0"} 0'
    )
    (snapshot,) = text(_page(more=more))
    assert snapshot.value("decode_passes_total") == 0


@pytest.mark.parametrize("usage", [-0.1, 1.5, math.nan])
def test_impossible_usage(text, usage: float) -> None:
    (snapshot,) = text(_page((3, 1, usage, 500, 1000)))
    assert [bad.fatal for bad in snapshot.bad_series] == [True]
    assert snapshot.pool.used is None


def test_a_gauge_that_is_always_nan_is_not_mentioned(page) -> None:
    (snapshot,) = page("sglang-0.5.23")
    assert not snapshot.bad_series
    assert not any("fwd_occupancy" in text for text in snapshot.missing.values())


def test_facts(page) -> None:
    (snapshot,) = page("sglang-0.5.23")
    facts = {name: fact.value for name, fact in snapshot.facts.items()}
    assert facts == {
        "max_total_num_tokens": 43008,
        "page_size": 1,
        "max_model_len": 8192,
        "disaggregation_mode": "null",
    }


def test_both_spellings(page) -> None:
    (colon,), (underscore,) = page("sglang-0.5.23"), page("sglang-0.5.23-openmetrics")
    assert colon.pool == underscore.pool
    for name, reading in colon.readings.items():
        assert underscore.readings[name] == reading


def test_a_partial_page_proves_no_upper_bound(text) -> None:
    (snapshot,) = text(_page())
    assert snapshot.engine.version == ">=0.5.6"


def test_absence_says_which_of_three(page) -> None:
    (old,), (new,) = page("sglang-0.5.2"), page("sglang-0.5.23")
    assert old.missing["new_token_ratio"].startswith("not in this version")
    assert new.missing["request_preemptions"].startswith("gone in this version")
    assert new.missing["lora_pool_used_ratio"] == (
        "not on this page: sglang:lora_pool_utilization, first in SGLang 0.5.7 (only with LoRA)"
    )


def test_radix_off_leaves_nothing_evictable(page) -> None:
    (snapshot,) = page("sglang-0.5.23-n-no-radix")
    assert snapshot.pool.evictable == 0
    assert snapshot.pool.used + snapshot.pool.available == snapshot.pool.capacity
