"""An engine's own pool size against the computed one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diagnoser.capacity import Plan, compare, hypotheses_for
from diagnoser.errors import CapacityError

Planned = Callable[..., Plan]


@pytest.mark.parametrize("observed", [90_000, 100_000, 110_000])
def test_within_ten_percent_nothing_is_explained(observed: int) -> None:
    found = compare(100_000, observed)
    assert (found.within, found.explanation) == (True, "")


def test_the_threshold_is_an_argument() -> None:
    assert compare(100, 115, 0.2).within
    assert not compare(100, 104, 0.03).within


@pytest.mark.parametrize(("ratio", "said"), [(2.0, "KV cache in 8 bits"), (0.5, "KV cache in 16 bits")])
def test_the_common_causes(ratio: float, said: str) -> None:
    found = compare(100_000, 100_000 * ratio)
    assert found.explained
    assert said in found.explanation


@pytest.mark.parametrize(("name", "settings", "ratio", "said"), [
    ("llama-3-70b", {}, 2.0, "the engine's KV dtype is fp8_plain, bfloat16 was assumed"),
    ("deepseek-v3.2", {}, 78_324 / 48_068, "KV dtype is fp8_ds_mla"),
    ("deepseek-v3.2", {"kv_dtype": "fp8_ds_mla"}, 48_068 / 78_324, "KV dtype is bfloat16"),
    ("gemma-3-27b", {}, 80 / 496, "window layers keep every token on one side only"),
    ("llama-3-70b", {"dp": 3}, 3.0, "a sum over 3 data-parallel ranks"),
    ("llama-3-70b", {"tp": 8}, 1 / 8, "the computed number is a sum over 8 GPUs"),
    ("deepseek-v3", {"tp": 8, "dcp": 8}, 1 / 8, "sum over 8"),
])
def test_causes_of_a_deployment(
    planned: Planned, name: str, settings: dict[str, object], ratio: float, said: str
) -> None:
    found = compare(1_000_000, 1_000_000 * ratio, hypotheses=hypotheses_for(planned(name, **settings)))
    assert found.explained
    assert said in found.explanation


def test_draft_layers_matter_to_a_fine_threshold(planned: Planned) -> None:
    found = compare(620_000, 610_000, 0.01, hypotheses_for(planned("deepseek-v3")))
    assert "the engine counts 1 draft layers, 0 were assumed" in found.explanation


@pytest.mark.parametrize(("ratio", "said"), [(0.72, "less memory was left"), (1.37, "more memory was left")])
def test_what_no_setting_explains_is_reported(planned: Planned, ratio: float, said: str) -> None:
    found = compare(100_000, 100_000 * ratio, hypotheses=hypotheses_for(planned("llama-3-70b")))
    assert not found.explained
    assert said in found.explanation


@pytest.mark.parametrize(("computed", "observed"), [(0, 10), (-5, 10), (10, -1)])
def test_nothing_to_compare(computed: int, observed: int) -> None:
    with pytest.raises(CapacityError, match="cannot compare"):
        compare(computed, observed)
