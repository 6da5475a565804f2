"""What each change does depends on what binds; L2 does nothing for admission."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diagnoser.model import Diagnosis, EngineId, Fact, L2State, PoolState, SignalValue, Verdict, WhatIf
from diagnoser.whatif import Limits, what_if

LIMITS = Limits(rho_target=0.8, pool_used_most=0.92, step_time_left_min=0.1, edge=0.05, few_requests=5)
LOAD = {
    "arrival_rate": 3.0,
    "rho": 1.5,
    "running_mean_requests": 20.0,
    "waiting_last_requests": 30.0,
    "l1_capacity_tokens": 10000.0,
    "l1_used_ratio_mean": 0.92,
    "resident_tokens_per_request": 460.0,
    "output_mean_tokens": 200.0,
    "queue_standing": 1.0,
    "step_stretch_ratio": 0.0,
}


def diagnosis(bottleneck: str = "l1", facts: dict[str, Fact] | None = None, **signals: float) -> Diagnosis:
    rows = {name: SignalValue(name, "", value) for name, value in (LOAD | signals).items()}
    verdict = Verdict(bottleneck, "critical", "high", "", l2=L2State.IDLE_SPACE)
    return Diagnosis(EngineId("vllm", "t"), 0.0, 30.0, 31, verdict, PoolState(), None, rows, facts=facts or {})


def changes(bottleneck: str = "l1", **signals: float) -> dict[str, WhatIf]:
    return {one.id: one for one in what_if(diagnosis(bottleneck, **signals), LIMITS)}


def test_twice_the_pool_halves_rho_where_steps_do_not_stretch() -> None:
    one = changes()["fp8_kv"]
    assert (one.rho, one.concurrency, one.helps) == (pytest.approx(0.75), 40, True)
    assert one.queue_growth == pytest.approx(3.0 - 4.0)
    assert one.queue == "drains in 30 s"
    assert one.assumption and one.error


def test_lost_time_grows_with_the_requests_served() -> None:
    found = changes(step_stretch_ratio=0.4)
    assert found["fp8_kv"].rho == pytest.approx(1.5 * (0.6 / 2 + 0.4))
    pool = found["required_pool"]
    assert pool.pool_low_tokens == pytest.approx(18750)
    assert pool.pool_high_tokens == pytest.approx(18750 * 0.6 / 0.4)
    assert pool.pool_tokens == pytest.approx((18750 * 28125) ** 0.5)


def test_no_pool_alone_carries_what_prefill_cannot() -> None:
    one = changes(step_stretch_ratio=0.7)["required_pool"]
    assert one.helps is None
    assert "may not do" in one.reason


def test_twice_the_l2_changes_nothing_in_admission() -> None:
    for bottleneck in ("l1", "slots", "prefill", "none"):
        one = changes(bottleneck)["twice_l2"]
        assert one.helps is False
        assert "no change in admission" in one.reason


def test_unless_the_host_pool_is_what_admission_counts() -> None:
    found = diagnosis()
    found = replace(found, verdict=replace(found.verdict, l2=L2State.GOVERNS_ADMISSION))
    assert {one.id: one.helps for one in what_if(found, LIMITS)}["twice_l2"] is None


@pytest.mark.parametrize("change", ["required_pool", "fp8_kv", "more_memory", "tp_x2"])
@pytest.mark.parametrize("bottleneck", ["slots", "prefill"])
def test_a_larger_pool_does_nothing_where_something_else_binds(change: str, bottleneck: str) -> None:
    one = changes(bottleneck)[change]
    assert one.helps is False
    assert "not KV space" in one.reason


def test_slots_help_where_slots_bind_as_far_as_the_pool_goes() -> None:
    assert changes("l1")["more_slots"].helps is False
    roomy = changes("slots", resident_tokens_per_request=100.0)["more_slots"]
    assert (roomy.helps, roomy.rho) == (True, pytest.approx(0.75))
    tight = changes("slots", resident_tokens_per_request=400.0)["more_slots"]
    assert tight.rho == pytest.approx(1.5 / (9200 / 400 / 20))
    assert "KV space holds" in tight.assumption


def test_a_known_slot_limit_caps_the_pool() -> None:
    one = changes(slots_limit_requests=24.0)["fp8_kv"]
    assert one.concurrency == pytest.approx(24)
    assert "24 slots" in one.assumption


def test_shorter_outputs_shrink_tokens_and_seconds() -> None:
    one = changes()["shorter_outputs"]
    assert one.rho == pytest.approx(1.5 * 0.7 * (360 + 70) / 460)


def test_half_the_reserve() -> None:
    assert "lower_conservativeness" not in changes()
    one = changes(l1_reserved_low_tokens=4600.0, l1_used_ratio_mean=0.46)["lower_conservativeness"]
    assert one.rho == pytest.approx(1.5 / (9200 / 6900))


def test_fp8_is_not_offered_twice() -> None:
    found = what_if(diagnosis(facts={"cache_dtype": Fact("cache_dtype", "fp8_e4m3", "t")}), LIMITS)
    assert "fp8_kv" not in {one.id for one in found}


def test_what_is_missing_is_said() -> None:
    found = diagnosis()
    rows = {**found.signals, "rho": SignalValue("rho", "", None, "sample longer")}
    told = {one.id: one for one in what_if(replace(found, signals=rows), LIMITS)}
    assert told["fp8_kv"].helps is None
    assert told["fp8_kv"].reason == "sample longer"
    assert told["twice_l2"].helps is False


def test_nothing_is_predicted_for_what_is_outside() -> None:
    assert changes("external") == {}
    assert changes("stalled") == {}
