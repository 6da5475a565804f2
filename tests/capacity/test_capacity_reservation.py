"""SGLang refuses on output it only reserves: the worked usages of the references and the arithmetic."""

from __future__ import annotations

import pytest

from diagnoser.capacity import refusal_usage, reservation
from diagnoser.capacity.reservation import admitted
from diagnoser.errors import CapacityError


@pytest.mark.parametrize(("prompt", "generated", "max_new", "ratio", "usage"), [
    (2000, 0, 4096, 0.7, 0.41), (500, 100, 2**30, 0.7, 0.17), (500, 100, 2**30, 0.098, 0.60), (0, 0, 0, 0.7, 0.0),
])
def test_usage_at_a_refusal(prompt: int, generated: int, max_new: int, ratio: float, usage: float) -> None:
    assert refusal_usage(prompt, generated, max_new, ratio) == pytest.approx(usage, abs=0.005)


def test_three_moments() -> None:
    """100k tokens, prompts of 500, outputs of 200, max_tokens not set."""
    found = reservation(100_000, 500, 200)
    need = 500 + 4096 + 1
    assert found.burst.requests == (100_000 - need) // (500 + 4096 + 1) + 1 == 21
    assert found.fresh.requests == int((100_000 - need) / (500 + 0.7 * 4096)) + 1
    assert found.steady.usage_ratio == pytest.approx(0.57, abs=0.03)
    assert found.burst.usage_ratio < found.fresh.usage_ratio < found.steady.usage_ratio


def test_max_tokens_and_conservativeness_release_it() -> None:
    unset, short = reservation(100_000, 500, 200), reservation(100_000, 500, 200, 256)
    eased = reservation(100_000, 500, 200, conservativeness=0.3)
    assert short.steady.requests > unset.steady.requests
    assert eased.fresh.requests > unset.fresh.requests
    assert eased.burst == unset.burst


def test_a_head_that_never_fits() -> None:
    assert reservation(4000, 500, 200).burst.requests == 0


@pytest.mark.parametrize("pool", [1_000, 10_000, 12_345])
def test_the_last_was_admitted_and_the_next_is_not(pool: int) -> None:
    for resident, reserved, need in ((100, 50, 400), (30, 0, 30), (7, 3.5, 999)):
        count = admitted(pool, resident, reserved, need).requests
        each = resident + reserved
        assert count == 0 or need < pool - (count - 1) * each
        assert not need < pool - count * each


@pytest.mark.parametrize("changes", [{"pool_tokens": -1}, {"page": 0}, {"conservativeness": 0.0}])
def test_what_makes_no_sense(changes: dict[str, float]) -> None:
    arguments = {"pool_tokens": 10, "prompt": 1, "output": 1, **changes}
    with pytest.raises(CapacityError, match="the reservation needs"):
        reservation(**arguments)  # type: ignore[arg-type]
