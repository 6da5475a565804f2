"""What each backend's page says about the host tier, and which state follows over a window."""

from __future__ import annotations

from dataclasses import replace

import pytest
from l2_story import state_of, told

from diagnoser.model import L2State, Reading, TierState
from diagnoser.tiers import tiers

IDLE = {L2State.IDLE_SPACE, L2State.IDLE_TRAFFIC, L2State.UNKNOWN}
FULL = {L2State.FULL_NORMAL, L2State.TOO_SMALL, L2State.UNKNOWN}
ENGINE = "vllm-0.32.0"
GIB16 = 16 * 2**30


def _over_window(tier, name: str, **options: object) -> tuple[TierState, L2State, str]:
    (first,), (last,) = tier(name, 0, **options), tier(name, -1, **options)
    found, reason = state_of(first, last, 50)
    return last, found, reason


def test_every_backend_is_found() -> None:
    names = [tier.name for tier in tiers()]
    assert names == sorted(names)
    assert {"hicache", "hisparse", "lmcache", "lmcache_mp", "mooncake", "vllm_offload", "vllm_simple"} <= set(names)


@pytest.mark.parametrize(
    ("name", "beside", "expected", "allowed"),
    [
        ("l2-vllm-offload-0.16.0-idle", "", L2State.IDLE_SPACE, IDLE),
        ("l2-vllm-offload-0.16.0-full", "", L2State.UNKNOWN, FULL),
        ("l2-vllm-offload-0.32.0-idle", "", L2State.IDLE_SPACE, IDLE),
        ("l2-vllm-offload-0.32.0-full", "", L2State.TOO_SMALL, FULL),
        ("l2-vllm-offload-tiering-0.32.0-full", "", L2State.TOO_SMALL, FULL),
        ("l2-vllm-simple-0.32.0-idle", "", L2State.UNKNOWN, IDLE),
        ("l2-vllm-simple-0.32.0-full", "", L2State.TOO_SMALL, FULL),
        ("l2-lmcache-inproc-0.5.6-idle", ENGINE, L2State.IDLE_TRAFFIC, IDLE),
        ("l2-lmcache-inproc-0.5.6-full", ENGINE, L2State.TOO_SMALL, FULL),
        ("l2-lmcache-mp-0.5.6-idle", ENGINE, L2State.IDLE_SPACE, IDLE),
        ("l2-lmcache-mp-0.5.6-full", ENGINE, L2State.TOO_SMALL, FULL),
        ("l2-lmcache-inproc-0.5.6-full-openmetrics", ENGINE, L2State.TOO_SMALL, FULL),
        ("l2-lmcache-mp-0.5.6-full-openmetrics", ENGINE, L2State.TOO_SMALL, FULL),
        ("sglang-0.5.23-j1-hicache-l1-bound-l2-idle", "", L2State.IDLE_SPACE, IDLE),
        ("sglang-0.5.23-j2-hicache-l2-full", "", L2State.FULL_NORMAL, FULL),
    ],
)
def test_state_over_a_window(tier, name: str, beside: str, expected: L2State, allowed: set[L2State]) -> None:
    _, found, reason = _over_window(tier, name, beside=beside)
    assert found is expected
    assert found in allowed
    assert reason


def test_pinned_gauges_never_count_as_resident(tier) -> None:
    for name in ("l2-vllm-offload-0.32.0-full", "l2-vllm-offload-0.32.0-idle", "l2-vllm-simple-0.32.0-full"):
        (seen,) = tier(name)
        assert seen.resident is None
        assert any(gauge.startswith("pinned") for gauge in seen.gauges)


def test_all_that_was_ever_stored_bounds_what_is_resident(tier) -> None:
    (old,), (new,) = tier("l2-vllm-offload-0.16.0-idle"), tier("l2-vllm-offload-0.32.0-idle")
    assert old.capacity == new.capacity == GIB16
    assert old.resident_upper == new.resident_upper == 498 * 2**21


def test_old_and_new_names_of_one_counter_are_not_added(tier) -> None:
    (seen,) = tier("l2-vllm-offload-0.32.0-full")
    assert seen.counters["stored_total"].value == 45720 * 2**21
    assert seen.counters["loaded_total"].value == 11816 * 2**21


def test_a_vllm_capacity_that_only_the_user_knows(tier) -> None:
    last, found, reason = _over_window(tier, "vllm-0.32.0-l-l2-reuse")
    assert found is L2State.UNKNOWN
    assert last.capacity is None
    assert "l2_capacity_bytes" in reason
    _, known, _ = _over_window(tier, "vllm-0.32.0-l-l2-reuse", l2_capacity_bytes=1e8)
    assert known is L2State.IDLE_SPACE
    _, small, _ = _over_window(tier, "vllm-0.32.0-l-l2-reuse", l2_capacity_bytes=3e7)
    assert small is L2State.UNKNOWN


def test_lmcache_needs_a_capacity_to_be_half_empty(tier) -> None:
    _, found, _ = _over_window(tier, "l2-lmcache-inproc-0.5.6-idle", beside=ENGINE, l2_capacity_bytes=float(GIB16))
    assert found is L2State.IDLE_SPACE


def test_lmcache_servers_capacity_is_bytes_by_ratio(tier) -> None:
    (seen,) = tier("l2-lmcache-mp-0.5.6-full", beside=ENGINE)
    assert seen.backend == "lmcache_mp"
    assert seen.capacity == GIB16
    assert seen.resident == 402 * 2**25
    assert seen.counters["evicted_total"].value == 1296


def test_hicache(tier) -> None:
    (seen,) = tier("sglang-0.5.23")
    assert (seen.backend, seen.unit, seen.capacity, seen.resident) == ("hicache", "tokens", 86016, 5134)
    assert seen.counters["stored_total"].value == 6528
    assert seen.counters["loaded_total"].value == 3264
    assert seen.counters["dropped_total"].value == 0
    assert seen.counters["lagged_total"] == Reading(0, "sglang:hicache_dropped_tokens_total (not born yet)")


@pytest.mark.parametrize(
    ("name", "presence"),
    [
        ("sglang-0.5.23-tp2", False),
        ("sglang-0.5.11-dp2", False),
        ("sglang-0.5.6-dp2", None),
        ("sglang-0.5.7", True),
        ("sglang-0.5.23-a0-cold-no-request", None),
        ("vllm-0.32.0", False),
        ("vllm-0.12.0", False),
        ("vllm-0.11.0-hidden", None),
    ],
)
def test_presence(tier, name: str, presence: bool | None) -> None:
    for seen in tier(name):
        assert seen.presence is presence
        assert seen.reason
        found, _ = state_of(seen)
        if presence is not True:
            assert found is (L2State.ABSENT if presence is False else L2State.UNKNOWN)


def test_a_connector_that_publishes_elsewhere_is_not_absent(tier_of_text) -> None:
    page = """
    vllm:num_requests_running{engine="0"} 1
    vllm:prompt_tokens_total{engine="0"} 10
    vllm:external_prefix_cache_queries_total{engine="0"} 10
    """
    (seen,) = tier_of_text(page)
    assert seen.presence is None
    assert "elsewhere" in seen.reason
    (unasked,) = tier_of_text(page.replace(" 10", " 0"))
    assert unasked.presence is None


def test_hisparse_governs_admission(tier_of_text) -> None:
    page = 'vllm:num_requests_running{engine="0"} 1\nvllm:hisparse_host_cache_usage_perc{engine="0"} 0.1'
    (seen,) = tier_of_text(page)
    assert state_of(seen)[0] is L2State.GOVERNS_ADMISSION
    (flagged,) = tier_of_text("sglang:token_usage 0.1\nsglang:hicache_host_total_tokens 9", enable_hisparse=True)
    assert flagged.governs_admission


def test_a_staging_pool_says_nothing(tier_of_text) -> None:
    page = "sglang:token_usage 0.1\nsglang:hicache_host_total_tokens 100\nsglang:hicache_host_used_tokens 0"
    (seen,) = tier_of_text(page, l2_memory_mode="buffer_only")
    assert seen.resident is None
    (wrong,) = tier_of_text(page.replace("used_tokens 0", "used_tokens 300"))
    assert wrong.capacity is None
    assert wrong.resident is None


def test_mooncake(tier_of_text) -> None:
    page = 'vllm:num_requests_running{engine="0"} 1\nmaster_allocated_bytes 50\nmaster_total_capacity_bytes 100'
    (seen,) = tier_of_text(page)
    assert (seen.backend, seen.capacity, seen.resident) == ("mooncake", 100, 50)
    operation = 'vllm:mooncake_store_operation_bytes_total{engine="0",operation="put"} 5'
    (client,) = tier_of_text(f'vllm:num_requests_running{{engine="0"}} 1\n{operation}')
    assert client.presence is True
    assert client.capacity is None
    assert client.counters["stored_total"].value == 5


def _tier(**counters: float) -> TierState:
    return TierState(
        "x", True, capacity=100, resident=50, counters={name: Reading(value, name) for name, value in counters.items()}
    )


def test_one_page_proves_no_rate() -> None:
    busy = replace(_tier(stored_total=5, loaded_total=5, errors_total=9, dropped_total=9), capacity=None)
    assert state_of(busy)[0] is L2State.UNKNOWN


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"errors_total": 1}, {"errors_total": 2}, L2State.BROKEN),
        ({}, {"errors_total": 2}, L2State.BROKEN),
        ({"dropped_total": 1}, {"dropped_total": 2}, L2State.TOO_SMALL),
        ({"evicted_total": 1}, {"evicted_total": 2}, L2State.FULL_NORMAL),
        ({"evicted_total": 0}, {"evicted_total": 0}, L2State.IDLE_SPACE),
        (
            {"evicted_total": 9, "stored_total": 1, "loaded_total": 1},
            {"evicted_total": 9, "stored_total": 1, "loaded_total": 1},
            L2State.IDLE_TRAFFIC,
        ),
        ({"evicted_total": 9, "stored_total": 1}, {"evicted_total": 9, "stored_total": 3}, L2State.FULL_NORMAL),
        ({"evicted_total": 9}, {"evicted_total": 0}, L2State.IDLE_SPACE),
    ],
)
def test_state_machine(before: dict[str, float], after: dict[str, float], expected: L2State) -> None:
    assert state_of(_tier(**before), _tier(**after))[0] is expected


def test_nothing_between_the_limits_is_called_idle_or_full() -> None:
    filling = replace(_tier(stored_total=5), resident=80)
    assert state_of(_tier(stored_total=1), filling)[0] is L2State.UNKNOWN


# ---------------------------------------------------------------- traps


SGLANG = "sglang:token_usage 0.1\nsglang:hicache_host_total_tokens 100\nsglang:hicache_host_used_tokens 5\n"


def test_tensor_parallel_ranks_and_priorities_repeat_one_count_of_tokens(tier_of_text) -> None:
    ranks = "".join(
        f'sglang:load_back_tokens_total{{tp_rank="{rank}",pool="{pool}"}} {count}\n'
        for rank in range(8)
        for pool, count in (("kv", 40), ("mamba", 3))
    )
    (seen,) = tier_of_text(SGLANG + ranks)
    assert seen.counters["loaded_total"].value == 40


def test_bytes_are_of_a_rank_and_seconds_of_all_at_once(tier_of_text) -> None:
    ranks = "".join(
        f'sglang:load_back_bytes_total{{tp_rank="{rank}"}} 100\n'
        f'sglang:load_back_duration_seconds_sum{{tp_rank="{rank}"}} 2\n'
        for rank in range(8)
    )
    (seen,) = tier_of_text(SGLANG + ranks)
    assert (seen.counters["load_bytes_total"].value, seen.counters["load_seconds_total"].value) == (800, 2)


def test_of_two_host_pools_the_fuller_one_counts(tier_of_text) -> None:
    states = "sglang:hicache_host_mamba_used_states 9\nsglang:hicache_host_mamba_total_states 10\n"
    (seen,) = tier_of_text(SGLANG + states)
    assert (seen.unit, seen.resident, seen.capacity) == ("states", 9, 10)
    assert state_of(seen)[0] is not L2State.IDLE_SPACE
    (roomy,) = tier_of_text(SGLANG + states.replace("states 9", "states 0"))
    assert (roomy.unit, roomy.resident) == ("tokens", 5)


def test_what_storage_could_not_fetch_tells_which_pool_was_short(tier_of_text) -> None:
    name = "sglang:storage_prefetch_unfulfilled_tokens_total"
    (seen,) = tier_of_text(
        SGLANG
        + f'{name}{{reason="device_capacity"}} 7\n{name}{{reason="host_capacity"}} 3\n{name}{{reason="deadline"}} 9\n'
    )
    assert seen.counters["l1_refused_total"].value == 7
    assert seen.counters["dropped_total"].value == 3


def test_lmcaches_l1_is_our_l2_and_its_l2_is_not(tier_of_text) -> None:
    page = """
    lmcache_mp_l1_memory_usage_bytes{l1_tag="a"} 25
    lmcache_mp_l1_usage_ratio{l1_tag="a"} 0.25
    lmcache_mp_l2_usage_bytes{l2_name="fs"} 9000
    lmcache_mp_l2_evicted_objects_chunks_total 5
    lmcache_mp_lookup_hit_l1_tokens_total 3
    lmcache_mp_lookup_hit_l2_tokens_total 4
    lmcache_mp_lookup_requested_tokens_total 10
    vllm:num_requests_running{engine="0"} 1
    """
    (seen,) = tier_of_text(page)
    assert (seen.capacity, seen.resident) == (100, 25)
    assert seen.counters["evicted_total"].value == 0
    assert seen.counters["hit_tokens_total"].value == 3
    assert state_of(seen)[0] is L2State.IDLE_SPACE


def test_lmcaches_hit_rate_of_an_idle_engine_is_not_read(tier_of_text) -> None:
    page = """
    lmcache:retrieve_hit_rate{worker_id="0"} 1
    lmcache:num_stored_tokens_total{worker_id="0"} 5
    lmcache:num_hit_tokens_total{worker_id="0"} 5
    lmcache:num_lookup_tokens_total{worker_id="0"} 9
    lmcache:num_lookup_hits_total{worker_id="0"} 5
    vllm:num_requests_running{engine="0"} 1
    """
    (seen,) = tier_of_text(page)
    found = told(seen, seen)
    assert found.signals["l2_hit_ratio"].value is None
    assert found.verdict.l2 is not L2State.IDLE_SPACE


def test_counters_of_a_connector_without_a_connector(tier_of_text) -> None:
    page = """
    vllm:num_requests_running{engine="0"} 1
    vllm:prompt_tokens_total{engine="0"} 10
    vllm:external_prefix_cache_queries_total{engine="0"} 0
    vllm:external_prefix_cache_hits_total{engine="0"} 0
    """
    (seen,) = tier_of_text(page)
    assert state_of(seen, seen)[0] is L2State.ABSENT


def test_nixl_is_a_transport_and_never_idle(tier_of_text) -> None:
    page = """
    vllm:num_requests_running{engine="0"} 1
    vllm:prompt_tokens_total{engine="0"} 10
    vllm:external_prefix_cache_queries_total{engine="0"} 0
    vllm:nixl_bytes_transferred_sum{engine="0"} 0
    """
    (seen,) = tier_of_text(page)
    assert (seen.backend, seen.presence) == ("nixl", None)
    found, reason = state_of(seen, seen)
    assert found is L2State.UNKNOWN
    assert "keeps none" in reason
    (told_so,) = tier_of_text(page.replace("vllm:nixl", "vllm:other"), kv_connector="NixlConnector")
    assert told_so.backend == "nixl"


def test_kvbm_without_traffic_is_not_called_idle(tier_of_text) -> None:
    page = """
    vllm:num_requests_running{engine="0"} 1
    kvbm_offload_blocks_d2h 0
    kvbm_onboard_blocks_h2d 0
    kvbm_host_cache_hit_rate 1
    """
    (seen,) = tier_of_text(page)
    assert (seen.backend, seen.presence) == ("kvbm", True)
    found, reason = state_of(seen, seen)
    assert found is L2State.UNKNOWN
    assert "how full" in reason
    (busy,) = tier_of_text(page.replace("h2d 0", "h2d 7"))
    assert busy.counters["loaded_total"].value == 7


def test_mooncakes_failures_are_misses(tier_of_text) -> None:
    page = (
        'vllm:num_requests_running{engine="0"} 1\nmaster_allocated_bytes 50\nmaster_total_capacity_bytes 100\n'
        "master_get_replica_list_failures_total 9\nmaster_put_start_failures_total 9\n"
    )
    (seen,) = tier_of_text(page)
    assert "errors_total" not in seen.counters
    assert seen.scope == "cluster"


def test_hisparse_is_no_copy_and_nothing_is_said_of_an_idle_tier(tier_of_text) -> None:
    page = 'vllm:num_requests_running{engine="0"} 1\nvllm:hisparse_host_cache_usage_perc{engine="0"} 0.1'
    (seen,) = tier_of_text(page)
    found = told(seen, seen)
    assert found.verdict.l2 is L2State.GOVERNS_ADMISSION
    assert not any("L2" in text for text in found.not_remedies)
