"""The state of the host tier by the checks of the rules: one row a case, with the traps that look like another one."""

from __future__ import annotations

import pytest
from l2_story import state_of, told

from diagnoser.model import L2State, Reading, TierState

S = L2State


def tier(
    capacity: float | None = 100.0,
    resident: float | None = None,
    upper: float | None = None,
    gauges: dict[str, float] | None = None,
    governs: bool = False,
    **counters: float,
) -> TierState:
    return TierState(
        "x",
        True,
        capacity=capacity,
        resident=resident,
        resident_upper=upper,
        governs_admission=governs,
        counters={name: Reading(value, name) for name, value in counters.items()},
        gauges={name: Reading(value, name) for name, value in (gauges or {}).items()},
    )


NONE, WHO_KNOWS = TierState("none", False, reason="none"), TierState("none", None, reason="it publishes elsewhere")
GAPS = {"evict_reuse_total": 4.0, "evict_reuse_seconds_total": 40.0, "kept_total": 4.0, "kept_seconds_total": 400.0}
FAR = {**GAPS, "evict_reuse_seconds_total": 40_000.0}


@pytest.mark.parametrize(
    ("case", "first", "last", "expected"),
    [
        ("no backend", NONE, NONE, S.ABSENT),
        ("not told", WHO_KNOWS, WHO_KNOWS, S.UNKNOWN),
        ("HiSparse, nearly empty", tier(governs=True), tier(governs=True), S.GOVERNS_ADMISSION),
        ("6 % resident", tier(resident=6), tier(resident=6), S.IDLE_SPACE),
        ("6 % resident and busy", tier(resident=6, loaded_total=1), tier(resident=6, loaded_total=9), S.IDLE_SPACE),
        ("all ever stored fills 30 %", tier(upper=10), tier(upper=30), S.IDLE_SPACE),
        ("all ever stored fills 60 %: half empty is not proven", tier(upper=60), tier(upper=60), S.UNKNOWN),
        ("stored three times over: nothing follows", tier(upper=300), tier(upper=300), S.UNKNOWN),
        ("a pinned gauge of 0", tier(gauges={"pinned": 0.0}), tier(gauges={"pinned": 0.0}), S.UNKNOWN),
        (
            "a saw-tooth at 0.65 that has evicted",
            tier(resident=65, evicted_total=9, stored_total=1),
            tier(resident=65, evicted_total=9, stored_total=2),
            S.FULL_NORMAL,
        ),
        ("80 % and rising", tier(resident=78, stored_total=1), tier(resident=80, stored_total=9), S.UNKNOWN),
        ("99 %, no counter", tier(resident=99), tier(resident=99), S.FULL_NORMAL),
        ("evicting", tier(evicted_total=1), tier(evicted_total=9), S.FULL_NORMAL),
        (
            "quiet, fill not shown",
            tier(stored_total=4, loaded_total=4),
            tier(stored_total=4, loaded_total=4),
            S.IDLE_TRAFFIC,
        ),
        ("only stores are counted", tier(stored_total=4), tier(stored_total=4), S.UNKNOWN),
        ("refused in the window", tier(dropped_total=1), tier(dropped_total=2), S.TOO_SMALL),
        ("refused long ago", tier(dropped_total=9, resident=6), tier(dropped_total=9, resident=6), S.IDLE_SPACE),
        ("wanted again soon", tier(evicted_total=1), tier(evicted_total=9, **GAPS), S.TOO_SMALL),
        ("wanted again hours later", tier(evicted_total=1), tier(evicted_total=9, **FAR), S.FULL_NORMAL),
        (
            "half a GB a second, half of the time",
            tier(load_bytes_total=0, load_seconds_total=0),
            tier(load_bytes_total=7.5e9, load_seconds_total=15),
            S.SLOW,
        ),
        (
            "slow, but rarely: not felt",
            tier(resident=6, load_bytes_total=0, load_seconds_total=0),
            tier(resident=6, load_bytes_total=5e7, load_seconds_total=0.1),
            S.IDLE_SPACE,
        ),
        (
            "fast and busy",
            tier(resident=99, load_bytes_total=0, load_seconds_total=0),
            tier(resident=99, load_bytes_total=3e11, load_seconds_total=15),
            S.FULL_NORMAL,
        ),
        (
            "as many loads at 18 GB/s as at 0.2 GB/s",
            tier(resident=99, load_speeds_sum_total=0, load_speeds_total=0),
            tier(resident=99, load_speeds_sum_total=182e9, load_speeds_total=20),
            S.FULL_NORMAL,
        ),
        ("slow by its own count", tier(slow_loads_total=3), tier(slow_loads_total=4), S.SLOW),
        (
            "copies too late",
            tier(resident=6, lagged_total=0, stored_total=0),
            tier(resident=6, lagged_total=50, stored_total=50),
            S.SLOW,
        ),
        ("failed transfers", tier(resident=6, errors_total=1), tier(resident=6, errors_total=2), S.BROKEN),
        ("failures of long ago", tier(resident=6, errors_total=7), tier(resident=6, errors_total=7), S.IDLE_SPACE),
        ("first failure ever", tier(resident=6), tier(resident=6, errors_total=1), S.BROKEN),
        (
            "counters reset, nothing failed since",
            tier(resident=6, errors_total=7),
            tier(resident=6, errors_total=0),
            S.IDLE_SPACE,
        ),
        ("reset and failed again", tier(resident=6, errors_total=7), tier(resident=6, errors_total=2), S.BROKEN),
        (
            "broken counts before slow and small",
            tier(),
            tier(errors_total=1, slow_loads_total=1, dropped_total=1),
            S.BROKEN,
        ),
        ("was there, does not answer now", tier(resident=6), WHO_KNOWS, S.UNKNOWN),
    ],
)
def test_state(case: str, first: TierState, last: TierState, expected: L2State) -> None:
    found, reason = state_of(first, last)
    assert found is expected, f"{case}: {reason}"
    assert reason


def test_unknown_says_what_is_missing() -> None:
    verdict = told(WHO_KNOWS, WHO_KNOWS).verdict
    assert "elsewhere" in verdict.l2_reason
    assert verdict.l2_missing == ("it publishes elsewhere",)
    assert not told(tier(resident=6), tier(resident=6)).verdict.l2_missing


def test_one_page_proves_no_rate() -> None:
    busy = tier(capacity=None, errors_total=9, dropped_total=9, evicted_total=0)
    assert state_of(busy)[0] is S.UNKNOWN
    assert state_of(tier(resident=6))[0] is S.IDLE_SPACE


def test_only_idle_space_says_that_there_is_room() -> None:
    for first, last in ((tier(stored_total=1, loaded_total=1),) * 2, (tier(upper=60),) * 2, (WHO_KNOWS, WHO_KNOWS)):
        found, reason = state_of(first, last)
        assert found is not S.IDLE_SPACE
        assert "% of its capacity" not in reason
        assert "half" not in reason


def test_a_hit_ratio_of_nothing_is_unknown() -> None:
    stuck = told(tier(hit_tokens_total=7, query_tokens_total=9), tier(hit_tokens_total=7, query_tokens_total=9))
    assert stuck.signals["l2_hit_ratio"].value is None
    assert "nothing was looked up" in stuck.signals["l2_hit_ratio"].missing_reason


def test_a_reset_in_the_middle_keeps_what_came_after_it() -> None:
    found = told(*(tier(evicted_total=value) for value in (90.0, 100.0, 5.0, 8.0)), every=10)
    assert found.signals["l2_evicted_rate"].value == pytest.approx((10 + 5 + 3) / 30)


def test_a_slow_copy_counts_if_it_is_felt() -> None:
    slow = tier(), tier(load_speeds_sum_total=2e8, load_speeds_total=1)
    assert told(*slow, queue={"waiting_deferred_requests": 3.0}).verdict.l2 is S.SLOW
    assert told(*slow, queue={"waiting_deferred_requests": 0.0}).verdict.l2 is not S.SLOW


def test_findings_carry_their_codes() -> None:
    codes = {
        "l2_broken": tier(errors_total=1),
        "l2_too_small": tier(dropped_total=1),
        "l2_slow": tier(slow_loads_total=1),
    }
    for code, last in codes.items():
        assert [finding.code for finding in told(tier(), last).findings] == [code]


def test_a_shared_tier_says_so_and_is_no_sign_of_progress() -> None:
    shared = TierState("x", True, capacity=100, resident=6, scope="cluster")
    assert "cluster" in state_of(shared, shared)[1]


# ---------------------------------------------------------------- would more help?


@pytest.mark.parametrize(
    ("case", "last", "answer", "words"),
    [
        ("never evicted", tier(resident=6, evicted_total=0), "no", "would hold the same"),
        ("never filled, provably", tier(upper=60), "no", "nothing was ever thrown out"),
        ("refused once", tier(upper=60, dropped_total=1), "unknown", ""),
        ("wanted again soon", tier(evicted_total=9, **GAPS), "yes", "wanted again"),
        ("refuses, and is used", tier(dropped_total=9, hit_tokens_total=5, query_tokens_total=9), "yes", "refuses"),
        (
            "refuses, and nothing is found",
            tier(dropped_total=9, hit_tokens_total=0, query_tokens_total=9),
            "unknown",
            "",
        ),
        ("full", tier(resident=99), "unknown", "cannot be seen"),
        ("HiSparse, host full", tier(governs=True, gauges={"held_ratio": 0.97}), "yes", "97 %"),
        ("HiSparse, host not full", tier(governs=True, gauges={"held_ratio": 0.2}), "unknown", "bounds admission"),
    ],
)
def test_would_more_help(case: str, last: TierState, answer: str, words: str) -> None:
    more = told(tier(governs=last.governs_admission), last).more_l2
    assert more is not None
    assert (more.answer, words in more.reason) == (answer, True), f"{case}: {more}"


def test_nothing_ever_calls_l2_useless() -> None:
    for last in (tier(resident=6), tier(resident=99), tier(dropped_total=9), NONE, WHO_KNOWS):
        found = told(last, last)
        assert found.more_l2 is not None
        assert "useless" not in " ".join((found.more_l2.reason, *found.not_remedies, *found.verdict.because))
