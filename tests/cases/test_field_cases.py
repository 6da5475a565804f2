"""Field cases as small stories: each is a public report, reduced to the series that decide it."""

from __future__ import annotations

from story import play, pool, sglang, vllm

from diagnoser.model import Diagnosis


def only(found: tuple[Diagnosis, ...]) -> Diagnosis:
    assert len(found) == 1
    return found[0]


def test_state_slots_bind_while_the_kv_pool_is_a_third_full() -> None:
    """A mamba hybrid that reserves 5 state slots a request stops at 8 running: sglang-rtxpro6000 issue 5."""
    polls = [
        sglang(
            num_running_reqs=8,
            num_queue_reqs=queue,
            token_usage=0.8,
            full_token_usage=0.35,
            mamba_usage=0.8,
            kv_used_tokens=35_000,
            kv_available_tokens=25_000,
            kv_evictable_tokens=40_000,
            max_total_num_tokens=100_000,
            num_used_tokens=35_000,
            gen_throughput=300,
            new_token_ratio=0.1,
            prompt_tokens_total=1e5 + 4000 * i,
            generation_tokens_total=5e4 + 4500 * i,
            num_requests_total=200 + 5 * i,
        )
        for i, queue in enumerate((3, 0, 4, 6, 0))
    ]
    verdict = only(play(polls, every=15)).verdict
    assert verdict.bottleneck == "slots"


def test_requests_pile_up_on_one_rank_without_a_queue() -> None:
    """8/8/8/8 becomes 27/5/0/0: vLLM issue 48808. Nobody waits, so no bottleneck, but an imbalance of rank 0 alone."""
    spread = ((8, 8, 8, 8), (20, 8, 3, 1), (27, 5, 0, 0), (27, 5, 0, 0))
    polls = []
    for i, ranks in enumerate(spread):
        page: dict[str, float] = {}
        for rank, running in enumerate(ranks):
            page |= pool(1000, rank=rank)
            page |= vllm(
                rank,
                running=running,
                waiting=0,
                capacity=0,
                usage=running / 60,
                preempted=0,
                prompt=1e4 * i,
                generated=(1e4 + 100 * rank) * i,
                steps=500 * i,
                step_tokens=2e4 * i,
            )
        polls.append(page)
    found = play(polls, every=134)
    assert [d.verdict.bottleneck for d in found] == ["none"] * 4
    assert [any(f.code == "imbalance" for f in d.findings) for d in found] == [True, False, False, False]


def test_one_usage_gauge_a_process_is_joined_and_said() -> None:
    """Eight API servers: one pid says 0.653, seven stale ones 0.0: vLLM PR 28792."""
    polls = []
    for i in range(4):
        page = vllm(running=20, waiting=0, preempted=0, prompt=1e4 * i, generated=2e4 * i) | pool(1000)
        for pid in range(8):
            value = 0.653 if pid == 0 else 0.0
            page[f'vllm:kv_cache_usage_perc{{engine="0",model_name="m",pid="{100 + pid}"}}'] = value
        polls.append(page)
    found = only(play(polls, every=15))
    assert found.verdict.bottleneck == "none"
    assert "invalid_series" in {f.code for f in found.findings}
    assert abs((found.signals["l1_used_ratio_max"].value or 0) - 0.653) < 1e-6


def test_requests_wait_for_ever_on_an_empty_engine() -> None:
    """running 0, waiting 6, usage 0 for an hour: vllm-metal issue 479. Stalled, not short of anything."""
    still = vllm(running=0, waiting=6, capacity=6, usage=0.0, preempted=0, prompt=5e5, generated=3e5, finished=900)
    found = only(play([still | pool(5000)] * 6, every=600))
    assert found.verdict.bottleneck == "stalled"
    assert "frozen_metrics" in {f.code for f in found.findings}


def test_underscore_spelling_is_read_like_the_colon() -> None:
    """A relay rewrote the colons; running 233, usage .82, queue 317: too conservative, says SGLang's tuning guide."""
    polls = []
    for i in range(4):
        page = sglang(
            num_running_reqs=233,
            num_queue_reqs=317 + 10 * i,
            token_usage=0.82,
            num_used_tokens=370_959,
            max_total_num_tokens=452_389,
            gen_throughput=4594.0,
            new_token_ratio=0.4,
            prompt_tokens_total=1e6 + 5e4 * i,
            generation_tokens_total=1e6 + 7e4 * i,
            num_requests_total=1000 + 30 * i,
        )
        polls.append({series.replace(":", "_"): value for series, value in page.items()})
    verdict = only(play(polls, every=15)).verdict
    assert (verdict.bottleneck, verdict.mode) == ("l1", "reservation")


def test_the_copy_from_storage_is_what_is_waited_for() -> None:
    """64K prompt, storage at 1.25 GB/s, 7.6 s of load: llm-d-kv-cache issue 559. Nothing moves but the load."""
    polls = [
        vllm(running=1, waiting=2, usage=0.3, preempted=0, prompt=7e4, generated=900 + (i // 4), finished=3)
        | pool(20_000)
        | {
            'vllm:kv_offload_total_bytes_total{engine="0",model_name="m",transfer_type="CPU_to_GPU"}': 2.5e9 * i,
            'vllm:kv_offload_total_time_total{engine="0",model_name="m",transfer_type="CPU_to_GPU"}': 1.9 * i,
        }
        for i in range(5)
    ]
    assert only(play(polls, every=2)).verdict.bottleneck == "l2_transfer"


def test_pool_full_and_retracting() -> None:
    """usage 1.00, then retractions and a collapse of throughput: SGLang issue 26248."""
    used = (2_500_000, 2_642_688, 2_642_688, 2_600_000, 2_430_000)
    polls = [
        sglang(
            num_running_reqs=r,
            num_queue_reqs=q,
            token_usage=u / 2_642_688,
            full_token_usage=u / 2_642_688,
            swa_token_usage=0.08,
            num_used_tokens=u,
            max_total_num_tokens=2_642_688,
            num_retracted_requests_total=3 * i,
            gen_throughput=429 - 100 * i,
            prompt_tokens_total=1e7,
            generation_tokens_total=1e6 + 4000 * i,
            num_requests_total=50 + i,
            new_token_ratio=0.4,
        )
        for i, (u, r, q) in enumerate(zip(used, (24, 22, 18, 10, 6), (3, 8, 14, 20, 24), strict=True))
    ]
    verdict = only(play(polls, every=10)).verdict
    assert (verdict.bottleneck, verdict.mode) == ("l1", "preempting")
