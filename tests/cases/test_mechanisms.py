"""One story a mechanism: what the engines do that looks like something else."""

from __future__ import annotations

import pytest
from story import play, pool, sglang, vllm

from diagnoser.model import Answer, Diagnosis


def said(found: Diagnosis, check: str) -> Answer:
    return next(c.answer for c in found.checks if c.id == check)


def steady(i: int, **series: float) -> dict[str, float]:
    """A vLLM engine that decodes and finishes 2 requests a poll of 500 prompt tokens, unless said otherwise."""
    usual = {
        "running": 6,
        "waiting": 0,
        "usage": 0.5,
        "preempted": 0,
        "prompt": 1e5 + 1000 * i,
        "generated": 5e4 + 400 * i,
        "steps": 1e4 + 50 * i,
        "step_tokens": 5e5 + 1400 * i,
        "finished": 100 + 2 * i,
        "first": 100 + 2 * i,
    }
    return vllm(**(usual | series))


def test_a_lifetime_of_preemptions_is_no_event() -> None:
    (found,) = play(
        [steady(i, preempted=503, waiting=4, usage=0.97, running=5 + i % 3) | pool(256) for i in range(10)], 1
    )
    assert found.verdict.bottleneck == "l1"
    assert found.verdict.mode == "admission"
    assert said(found, "preempting") is Answer.NO


def test_high_usage_without_a_queue_is_healthy() -> None:
    (found,) = play([steady(i, usage=0.95) | pool(256) for i in range(10)], 1)
    assert (found.verdict.bottleneck, found.verdict.severity) == ("none", "info")


def test_few_deferred_among_many_waiting_do_not_decide() -> None:
    polls = [
        steady(i, waiting=20, capacity=18, deferred=2, usage=0.98, preempted=3 * i, running=4 + i % 3) | pool(256)
        for i in range(10)
    ]
    assert play(polls, 1)[0].verdict.bottleneck == "l1"


def test_most_deferred_is_outside_at_any_usage() -> None:
    polls = [steady(i, waiting=20, capacity=1, deferred=19, usage=0.9) | pool(256) for i in range(10)]
    assert play(polls, 1)[0].verdict.bottleneck == "external"


@pytest.mark.parametrize(
    ("running", "usage", "prompt", "bottleneck"),
    [
        # free 204 < 704, and six fresh prompts of 704 cannot fit into 4,080: KV space explains the plateau
        (5, 0.95, 700, "l1"),
        # free 2,856 > 704 and nobody is let in
        (5, 0.30, 700, "slots"),
        # free 326 < 480, but eight fresh prompts of 480 would fit: KV space would let one more in now and then
        (7, 0.92, 480, "slots"),
    ],
)
def test_flat_running_is_slots_only_where_kv_space_does_not_explain_it(
    running: int, usage: float, prompt: int, bottleneck: str
) -> None:
    polls = [
        steady(i, running=running, waiting=9, usage=usage, prompt=2 * prompt * i, first=2 * i) | pool(256)
        for i in range(12)
    ]
    (found,) = play(polls, 1)
    assert found.verdict.bottleneck == bottleneck


def test_an_inferred_limit_is_not_of_high_confidence() -> None:
    polls = [steady(i, running=5, waiting=9, usage=0.30) | pool(256) for i in range(12)]
    (guessed,), (known,) = play(polls, 1), play(polls, 1, facts={"max_num_seqs": 5, "max_num_batched_tokens": 2048})
    assert (guessed.verdict.bottleneck, known.verdict.bottleneck) == ("slots", "slots")
    assert guessed.verdict.confidence == "medium"
    assert said(guessed, "slots_inferred") is Answer.YES and said(known, "slots_inferred") is Answer.NO


def test_a_known_limit_settles_what_a_plateau_leaves_open() -> None:
    polls = [steady(i, running=5, waiting=9, usage=0.95, prompt=1280 * i, first=2 * i) | pool(256) for i in range(12)]
    assert play(polls, 1, facts={"max_num_seqs": 5})[0].verdict.bottleneck == "slots"
    assert play(polls, 1, facts={"max_num_seqs": 64})[0].verdict.bottleneck == "l1"


def scheduler(i: int, **series: float) -> dict[str, float]:
    """An SGLang engine that runs 12 requests and finishes one a poll."""
    usual = {
        "num_running_reqs": 12,
        "num_queue_reqs": 0,
        "token_usage": 0.6,
        "full_token_usage": 0.6,
        "kv_used_tokens": 4915,
        "kv_available_tokens": 177,
        "kv_evictable_tokens": 3100,
        "max_total_num_tokens": 8192,
        "num_used_tokens": 4915,
        "new_token_ratio": 0.098,
        "gen_throughput": 400,
        "prompt_tokens_total": 1e4 + 200 * i,
        "generation_tokens_total": 1e4 + 400 * i,
        "num_requests_total": 50 + i,
        "scheduler_idle_seconds_total": 3.0,
    }
    return sglang(**(usual | series))


def test_sglangs_gauge_leaves_out_the_batch_it_admits() -> None:
    """It reads 7 with all 8 slots taken."""
    polls = [scheduler(i, num_running_reqs=7, num_queue_reqs=9) for i in range(10)]
    assert play(polls, 1, facts={"max_running_requests": 8})[0].verdict.bottleneck == "slots"
    assert play(polls, 1, facts={"max_running_requests": 64})[0].verdict.bottleneck == "l1"


def test_refused_by_reservation_with_an_almost_empty_pool() -> None:
    polls = [
        scheduler(
            i,
            num_running_reqs=2 + i % 2,
            num_queue_reqs=30,
            token_usage=0.03,
            full_token_usage=0.03,
            kv_used_tokens=250,
        )
        | sglang(kv_available_tokens=942, kv_evictable_tokens=7000)
        for i in range(10)
    ]
    (found,) = play(polls, 1)
    assert (found.verdict.bottleneck, found.verdict.mode) == ("l1", "reservation")
    assert any("conservativeness" in remedy.flag for remedy in found.remedies)


@pytest.mark.parametrize(("seconds", "bottleneck"), [(28, "none"), (31, "leak")])
def test_tokens_held_by_nobody_are_a_leak_only_after_the_idle_refresh(seconds: int, bottleneck: str) -> None:
    """SGLang's gauges are up to 30 s old when nothing runs."""
    busy = [scheduler(i) for i in range(3)]
    idle = scheduler(3, num_running_reqs=0, token_usage=0.0, full_token_usage=0.0, kv_used_tokens=9, num_used_tokens=9)
    idle |= sglang(kv_available_tokens=4000, kv_evictable_tokens=4183)
    assert play([*busy, *[idle] * (seconds + 1)], 1)[0].verdict.bottleneck == bottleneck


def test_the_schedulers_clock_shows_a_hang_that_no_request_does() -> None:
    """Idle gauges, and a loop that turned until the fourth poll."""
    polls = []
    for i in range(14):
        page = scheduler(
            0, num_running_reqs=0, token_usage=0.0, full_token_usage=0.0, kv_used_tokens=0, num_used_tokens=0
        )
        clock = {
            f"sglang:scheduler_stage_seconds_total{series[series.index('{') :]}": 0.0
            for series in page
            if "tp_rank" in series
        }
        (name,) = clock
        polls.append(page | {name: 10.0 + min(i, 4), **sglang(kv_available_tokens=8192, kv_evictable_tokens=0)})
    assert play(polls, 1)[0].verdict.bottleneck == "stalled"
    for i, page in enumerate(polls):
        page[name] = 10.0 + i
    assert play(polls, 1)[0].verdict.bottleneck == "none"


@pytest.mark.parametrize(("failed", "bottleneck"), [(2, "none"), (3, "unreachable")])
def test_three_lost_polls_in_a_row_are_unreachable(failed: int, bottleneck: str) -> None:
    (found,) = play([*(steady(i) | pool(256) for i in range(8)), *["test:8000 refused the connection."] * failed], 1)
    assert found.verdict.bottleneck == bottleneck


def test_one_page_is_unknown_and_says_what_it_saw() -> None:
    (found,) = play([steady(0, waiting=7, usage=0.99) | pool(256)], 1)
    assert found.verdict.bottleneck == "unknown"
    assert "7 wait" in found.verdict.because[0]
    assert said(found, "queueing") is Answer.UNKNOWN


@pytest.mark.parametrize("broken", [{"usage": -0.39}, {"usage": 1.7}, {"waiting": float("nan")}])
def test_impossible_values_are_no_evidence(broken: dict[str, float]) -> None:
    (found,) = play([steady(i, **broken) | pool(256) for i in range(6)], 1)
    assert found.verdict.bottleneck == "unknown"
    assert "invalid_series" in {f.code for f in found.findings}


def test_a_page_without_a_queue_is_unknown_not_healthy() -> None:
    page = {series: value for series, value in steady(0).items() if "num_requests_waiting" not in series}
    (found,) = play([page | pool(256)] * 6, 1)
    assert found.verdict.bottleneck == "unknown"


def test_a_restart_is_said_and_breaks_nothing() -> None:
    polls = [steady(i) | pool(256) | {"process_start_time_seconds": 1.0} for i in range(5)]
    polls += [vllm(running=1, waiting=0, usage=0.1, preempted=0, prompt=50 * i, generated=20 * i) | pool(256)
              | {"process_start_time_seconds": 2.0} for i in range(1, 6)]  # fmt: skip
    (found,) = play(polls, 1)
    assert found.verdict.bottleneck == "none"
    assert "restart" in {f.code for f in found.findings}
    assert (found.signals["generation_tokens_rate"].value or 0) < 400


def test_a_percentile_is_quoted_as_its_bucket() -> None:
    polls = []
    for i in range(6):
        ttft = {f'vllm:time_to_first_token_seconds_bucket{{engine="0",model_name="m",le="{le}"}}': n * i
                for le, n in (("20.0", 1), ("40.0", 10), ("+Inf", 10))}  # fmt: skip
        ttft |= {
            f'vllm:time_to_first_token_seconds_{k}{{engine="0",model_name="m"}}': v * i
            for k, v in (("sum", 300), ("count", 10))
        }
        page = {s: v for s, v in steady(i, waiting=12, usage=0.97, running=4 + i % 3).items() if "first_token" not in s}
        polls.append(page | ttft | pool(256))
    (found,) = play(polls, 1)
    assert any("(20 s, 40 s]" in sentence for sentence in found.verdict.because)
    assert (found.signals["ttft_p99_low_seconds"].value, found.signals["ttft_p99_high_seconds"].value) == (20.0, 40.0)


@pytest.mark.parametrize(
    ("waiting", "preempted", "bottleneck"),
    [
        # one page of five catches a moment's queue; ten first tokens took 5 s together in that minute
        ((0, 0, 2, 0, 0), 0, "none"),
        # two pages in a row: whoever waits and goes without a first token is counted nowhere
        ((0, 2, 2, 0, 0), 0, "l1"),
        # requests that were thrown out wait too, and had their first token before
        ((0, 0, 2, 0, 0), 3, "l1"),
        # who waits at the end has no first token yet
        ((0, 0, 2, 0, 2), 0, "l1"),
    ],
)
def test_a_queue_that_pages_catch_by_chance_lasts_no_longer_than_first_tokens_took(
    waiting: tuple[int, ...], preempted: int, bottleneck: str
) -> None:
    polls = [
        steady(i, waiting=w, usage=0.97, running=5 + i % 3, preempted=preempted * i) | pool(256)
        for i, w in enumerate(waiting)
    ]
    (found,) = play(polls, 15)
    assert found.verdict.bottleneck == bottleneck
