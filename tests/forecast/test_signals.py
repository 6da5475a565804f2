"""The forecast signals on pages written by hand, where the right answer is known."""

from __future__ import annotations

import pytest

from diagnoser.model import Diagnosis
from tests.story import play, pool, sglang, vllm

BLOCKS = 1001
"""16,000 tokens without the null block."""


def page(
    second: int, *, arrive: float = 2.0, admit: float = 2.0, usage: float = 0.5, running: float = 10.0
) -> dict[str, float]:
    """A second of an engine whose requests make 100 tokens each; `arrive` less `admit` wait."""
    return pool(BLOCKS) | vllm(
        running=running,
        waiting=round((arrive - admit) * second, 6),
        usage=usage,
        prompt=1000.0 * admit * second,
        generated=100.0 * admit * second,
        finished=admit * second,
        first=admit * second,
        steps=40.0 * second,
        step_tokens=400.0 * second,
    )


def value(diagnosis: Diagnosis, name: str) -> float:
    found = diagnosis.signals[name]
    assert found.value is not None, found.missing_reason
    return found.value


def reason(diagnosis: Diagnosis, name: str) -> str:
    found = diagnosis.signals[name]
    assert found.value is None
    return found.missing_reason


def story(pages: int = 31, **load: float) -> Diagnosis:
    (found,) = play([page(second, **load) for second in range(pages)], 1.0)
    return found


class TestLoad:
    def test_a_light_load_is_measured_against_the_pool(self) -> None:
        found = story(usage=0.46)
        assert value(found, "arrival_rate") == pytest.approx(2.0)
        assert value(found, "token_seconds_per_request") == pytest.approx(0.46 * 16000 / 2)
        assert value(found, "rho") == pytest.approx(0.5)
        assert value(found, "service_rate_max") == pytest.approx(4.0)
        assert value(found, "required_pool_tokens") == pytest.approx(16000 * 0.5 / 0.8)
        assert value(found, "resident_tokens_per_request") == pytest.approx(736)
        assert value(found, "predicted_wait_seconds") == 0

    def test_with_a_standing_queue_what_is_served_is_all_that_can_be(self) -> None:
        found = story(arrive=3.0, admit=2.0, usage=0.97)
        assert value(found, "arrival_rate") == pytest.approx(3.0)
        assert value(found, "rho") == pytest.approx(1.5)
        assert value(found, "predicted_wait_seconds") == pytest.approx(15)
        assert value(found, "waiting_ahead_requests") == pytest.approx(45)
        assert value(found, "required_pool_low_tokens") == pytest.approx(16000 * 1.5 / 0.8)
        assert {c.id: c.answer.value for c in found.checks}["overloaded"] == "yes"

    def test_steps_of_one_length_leave_no_doubt(self) -> None:
        found = story(arrive=3.0, admit=2.0, usage=0.97)
        assert value(found, "step_stretch_ratio") == pytest.approx(0.0, abs=1e-6)
        assert value(found, "required_pool_high_tokens") == pytest.approx(value(found, "required_pool_low_tokens"))

    def test_shed_requests_count_as_arrivals(self) -> None:
        shed = 'vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"}'
        (found,) = play([page(second) | {shed: 1.0 * second} for second in range(31)], 1.0)
        assert value(found, "arrival_rate") == pytest.approx(3.0)

    def test_a_queue_that_is_given_up_gives_no_rate(self) -> None:
        gone = [page(s) | vllm(waiting=100.0 if s < 30 else 0.0) for s in range(31)]
        (found,) = play(gone, 1.0)
        assert "left it unserved" in reason(found, "arrival_rate")
        assert reason(found, "rho")

    def test_few_finished_requests_say_nothing(self) -> None:
        found = story(arrive=0.1, admit=0.1)
        assert "sample longer" in reason(found, "rho")
        assert {c.id: c.answer.value for c in found.checks}["overloaded"] == "unknown"

    def test_one_page_has_no_rates(self) -> None:
        found = story(pages=1)
        for name in ("arrival_rate", "rho", "required_pool_tokens", "time_to_exhaustion_seconds", "step_stretch_ratio"):
            assert reason(found, name)

    def test_without_lengths_of_prompts_a_reserving_engine_gets_no_pool(self) -> None:
        idle = {"num_running_reqs": 2.0, "num_queue_reqs": 5.0, "token_usage": 0.02, "max_total_num_tokens": 8000.0}
        pages = [
            sglang(**idle, generation_tokens_total=300.0 * second, num_requests_total=3.0 * second)
            for second in range(31)
        ]
        (found,) = play(pages, 1.0)
        assert reason(found, "required_pool_tokens")


class TestExhaustion:
    def test_a_line(self) -> None:
        (found,) = play([page(s, usage=0.2 + 0.01 * s) for s in range(31)], 1.0)
        assert value(found, "used_trend_fit_ratio") == pytest.approx(1.0)
        assert value(found, "time_to_exhaustion_seconds") == pytest.approx((8000 - 1008) / 160)
        assert {c.id: c.answer.value for c in found.checks}["pool_fills"] == "yes"

    def test_up_and_down_is_no_trend(self) -> None:
        (found,) = play([page(s, usage=0.4 + 0.2 * (s % 2) + 0.001 * s) for s in range(31)], 1.0)
        assert reason(found, "time_to_exhaustion_seconds").startswith("no trend: a line explains")

    def test_a_pool_that_empties_is_no_trend(self) -> None:
        (found,) = play([page(s, usage=0.6 - 0.01 * s) for s in range(31)], 1.0)
        assert reason(found, "time_to_exhaustion_seconds") == "no trend: the tokens held do not grow"
        assert {c.id: c.answer.value for c in found.checks}["pool_fills"] == "no"

    def test_few_pages_are_no_trend(self) -> None:
        (found,) = play([page(s, usage=0.2 + 0.01 * s) for s in range(4)], 1.0)
        assert "needs 5 pages" in reason(found, "time_to_exhaustion_seconds")
