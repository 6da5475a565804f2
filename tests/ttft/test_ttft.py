"""TTFT by cause: parts of the same requests, estimates for those who still wait, buckets, tails, silence."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from story import play, pool, sglang, vllm

from diagnoser.model import Diagnosis, TtftPart
from diagnoser.outputs.words import ttft_now, ttft_words

INF = float("inf")
EDGES = (1.0, 5.0, 10.0, 20.0, 40.0, INF)


def histogram(name: str, labels: str, values: Mapping[float, float]) -> dict[str, float]:
    """Series of a histogram: {seconds each took: how many}."""
    page = {
        f'{name}_bucket{{{labels},le="{"+Inf" if edge == INF else edge}"}}': sum(
            n for v, n in values.items() if v <= edge
        )
        for edge in EDGES
    }
    total = sum(values.values())
    return page | {f"{name}_sum{{{labels}}}": sum(v * n for v, n in values.items()), f"{name}_count{{{labels}}}": total}


def finished(n: float, queue: float, prefill: float, decode: float, rest: float = 0.0) -> dict[str, float]:
    """What vLLM observes when n requests finish."""
    times = {
        "request_queue_time_seconds": queue,
        "request_prefill_time_seconds": prefill,
        "request_decode_time_seconds": decode,
        "e2e_request_latency_seconds": queue + prefill + decode + rest,
    }
    out: dict[str, float] = {}
    for name, value in times.items():
        out |= histogram(f"vllm:{name}", 'engine="0",model_name="m"', {value: n})
    return out


def first(values: Mapping[float, float]) -> dict[str, float]:
    return histogram("vllm:time_to_first_token_seconds", 'engine="0",model_name="m"', values)


def page(waiting: float, ttft: Mapping[float, float], done: dict[str, float], **more: float) -> dict[str, float]:
    gauges = vllm(running=8, waiting=waiting, usage=0.5, **{"preempted": 0, "generated": 1, **more})
    return gauges | pool(256) | first(ttft) | done


def only(found: tuple[Diagnosis, ...]) -> Diagnosis:
    (one,) = found
    return one


def parts(found: Diagnosis) -> dict[str, TtftPart]:
    assert found.ttft is not None
    return {part.name: part for part in found.ttft.parts}


def test_parts_are_of_the_requests_that_finished() -> None:
    """Many first tokens and few finishes: the parts still add up, and it is said how old they are."""
    start = page(0, {0.5: 0.0}, finished(0, 6, 1, 20, 1))
    end = page(0, {0.5: 90.0}, finished(10, 6, 1, 20, 1))
    found = only(play([start, end], every=30))
    shares = {name: part.share for name, part in parts(found).items() if part.kind == "measured"}
    assert shares == pytest.approx({"queue": 0.75, "prefill": 0.125, "redo": 0.0, "rest": 0.125})
    assert "wait for a load" in parts(found)["l2_load"].reason
    assert found.ttft is not None
    assert found.ttft.basis == "means of the 10 that finished, first token about 20 s earlier"


def test_nobody_finished_is_said_and_not_zero() -> None:
    start, end = page(9, {0.5: 0.0}, finished(5, 6, 1, 20)), page(9, {0.5: 3.0}, finished(5, 6, 1, 20))
    found = only(play([start, end], every=30))
    assert parts(found)["queue"].kind == "unknown"
    assert "this window" in parts(found)["queue"].reason
    assert "The parts are not known" in ttft_now(found)
    assert "queue" not in ttft_words(found)


def test_prefill_may_hold_requests_thrown_out_before_their_first_token() -> None:
    done = finished(0, 6, 1, 20), finished(10, 6, 1, 20)
    start = page(5, {0.5: 0.0}, done[0], preempted=3)
    end = page(5, {0.5: 9.0}, done[1], preempted=7)
    redo = parts(only(play([start, end], every=30)))["redo"]
    assert redo.kind == "unknown"
    assert redo.reason.startswith("4 were thrown out")


def test_a_load_from_l2_is_taken_out_of_the_queue_time() -> None:
    stage = 'vllm:num_requests_kv_fetch_by_stage{{engine="0",model_name="m",stage="{}"}}'
    loading = {
        stage.format(name): n
        for name, n in (("in_progress", 2.0), ("waiting_to_start", 5.0), ("completed_waiting", 5.0))
    }
    queries = {'vllm:external_prefix_cache_queries_total{engine="0",model_name="m"}': 5.0}
    start = page(2, {0.5: 0.0}, finished(0, 6, 2, 20)) | loading | queries
    end = page(2, {0.5: 30.0}, finished(30, 6, 2, 20)) | loading | queries
    found = parts(only(play([start, end], every=30)))
    load, queue = found["l2_load"], found["queue"]
    assert (load.kind, load.seconds) == ("estimate", pytest.approx(2.0))
    assert (load.share, queue.share) == (pytest.approx(0.25), pytest.approx(0.5))


def test_little_tells_what_the_histograms_cannot_show_yet() -> None:
    """40 wait, one first token a second, one more waits every second: 30 s for a new arrival, 20 s for the head."""
    polls = [page(10 + i, {0.5: i}, finished(0, 6, 1, 20)) for i in range(31)]
    found = only(play(polls, every=1))
    assert found.ttft is not None
    assert found.ttft.wait_estimate_seconds == pytest.approx(25.0)
    assert found.ttft.queue_age_estimate_seconds == pytest.approx(20.0)
    assert "Estimate: whoever arrives now waits about 25 s" in ttft_now(found)


def test_silence_with_a_queue_is_said() -> None:
    polls = [page(5, {0.5: min(i, 20)}, finished(0, 6, 1, 20), generated=i) for i in range(31)]
    found = only(play(polls, every=1))
    assert found.signals["ttft_silent_seconds"].value == 10
    assert "No first token for 10 s while 5 wait." in ttft_now(found)
    calm = only(play([page(0, {0.5: 9.0}, {}, generated=i) for i in range(31)], every=1))
    assert "No first token" not in ttft_now(calm)


def test_a_percentile_is_its_bucket() -> None:
    found = only(play([page(0, {0.5: 0.0}, {}), page(0, {0.5: 10.0, 30.0: 90.0}, {})], every=30))
    assert found.ttft is not None
    assert (found.ttft.p50, found.ttft.p99) == ((20.0, 40.0), (20.0, 40.0))
    assert ttft_words(found).replace("\u00a0", " ") == "P99 in (20 s, 40 s]"


@pytest.mark.parametrize(
    ("queue", "prefill", "answer"),
    [({15.0: 80.0, 30.0: 20.0}, {0.5: 100.0}, "yes"), ({0.5: 100.0}, {0.5: 80.0, 25.0: 20.0}, "no")],
)
def test_the_tail_is_compared_at_shared_edges(
    queue: dict[float, float], prefill: dict[float, float], answer: str
) -> None:
    def done(scale: float) -> dict[str, float]:
        labels = 'engine="0",model_name="m"'
        return histogram(
            "vllm:request_queue_time_seconds", labels, {v: n * scale for v, n in queue.items()}
        ) | histogram("vllm:request_prefill_time_seconds", labels, {v: n * scale for v, n in prefill.items()})

    ttft = {16.0: 80.0, 31.0: 20.0} if answer == "yes" else {1.0: 80.0, 26.0: 20.0}
    found = only(play([page(0, {0.5: 0.0}, done(0)), page(0, ttft, done(1))], every=30))
    assert found.signals["ttft_tail_edge_seconds"].value == 20.0
    assert found.signals["ttft_tail_ratio"].value == pytest.approx(0.2)
    check = next(check for check in found.checks if check.id == "tail_is_queue")
    assert check.answer.value == answer


def test_sglang_has_no_prefill_time_so_it_is_one_part_with_the_rest() -> None:
    own = 'engine_type="unified",model_name="m"'

    def poll(n: float) -> dict[str, float]:
        gauges = sglang(num_running_reqs=4, num_queue_reqs=2, token_usage=0.3)
        ttft = histogram("sglang:time_to_first_token_seconds", own + ',is_streaming="true"', {8.0: n})
        return gauges | ttft | histogram("sglang:queue_time_seconds", own + ',tp_rank="0",pp_rank="0"', {6.0: n})

    found = parts(only(play([poll(0), poll(20)], every=30)))
    assert found["queue"].share == pytest.approx(0.75)
    assert found["prefill_and_rest"].share == pytest.approx(0.25)
    assert "prefill" not in found


def test_in_sglang_a_queue_time_without_a_first_token_is_another_request() -> None:
    own = 'engine_type="unified",model_name="m"'

    def poll(n: float, queued: float) -> dict[str, float]:
        gauges = sglang(num_running_reqs=4, num_queue_reqs=2, token_usage=0.3)
        ttft = histogram("sglang:time_to_first_token_seconds", own + ',is_streaming="true"', {8.0: n})
        return gauges | ttft | histogram("sglang:queue_time_seconds", own + ',tp_rank="0",pp_rank="0"', {6.0: queued})

    found = parts(only(play([poll(0, 0), poll(4, 20)], every=30)))
    assert found["queue"].kind == "unknown"
    assert "not the same" in found["queue"].reason
