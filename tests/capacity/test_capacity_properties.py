"""What must hold for every model, deployment and length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from diagnoser.capacity import (
    Budget,
    Deployment,
    Model,
    Request,
    Workload,
    as_data,
    as_text,
    binding,
    compare,
    estimate,
    load_model,
    make_pool,
    plan,
    reservation,
)

MODELS: dict[str, Model] = {
    path.stem: load_model(path) for path in sorted((Path(__file__).parents[1] / "data" / "models").glob("*.json"))
}
GIB = 1024**3
names, engines = st.sampled_from(sorted(MODELS)), st.sampled_from(("vllm", "sglang"))
pools, lengths = st.integers(0, 200 * GIB), st.integers(1, 200_000)
dtypes = st.sampled_from(("auto", "bfloat16", "fp8_plain", "float32"))
settings = st.fixed_dictionaries({
    "engine": engines, "kv_dtype": dtypes, "block_size": st.sampled_from((None, 1, 16, 64)),
    "prefix_caching": st.booleans(), "hybrid": st.booleans(), "draft_layers": st.integers(0, 2),
})


def at_peak(name: str, deployment: Deployment, pool: int, length: int) -> float:
    """Requests of `length` tokens that fit, not rounded."""
    load = Workload((Request(length),))
    return binding(make_pool(plan(MODELS[name], deployment), pool, 200_000).limits(load, "peak")).requests


@given(names, settings, pools, pools)
def test_more_bytes_never_hold_fewer_tokens(name: str, given_settings: Any, one: int, other: int) -> None:
    made = plan(MODELS[name], Deployment(**given_settings))
    less, more = (make_pool(made, pool, 200_000).size for pool in sorted((one, other)))
    assert less.tokens <= more.tokens
    assert less.usable_tokens <= less.tokens
    assert (less.blocks or 0) <= (more.blocks or 0)


@given(names, settings, pools, lengths, lengths)
def test_longer_requests_never_fit_more_often(name: str, given_settings: Any, pool: int, one: int, other: int) -> None:
    deployment = Deployment(**given_settings)
    short, long = (at_peak(name, deployment, pool, length) for length in sorted((one, other)))
    assert short >= long - 1e-9


@given(names, settings, pools, pools, lengths)
def test_more_bytes_never_fit_fewer_requests(name: str, given_settings: Any, one: int, other: int, length: int) -> None:
    deployment = Deployment(**given_settings)
    less, more = (at_peak(name, deployment, pool, length) for pool in sorted((one, other)))
    assert less <= more + 1e-9


@given(names, engines, st.sampled_from((1, 2, 4, 8, 16)))
def test_tp_beyond_the_kv_heads_frees_no_kv(name: str, engine: Any, tp: int) -> None:
    """Never more bytes a GPU, never fewer on all GPUs, and none saved once each GPU has one head."""
    model = MODELS[name]
    before, after = (plan(model, Deployment(engine=engine, tp=size)) for size in (tp, 2 * tp))
    assert after.token_bytes_per_gpu <= before.token_bytes_per_gpu
    assert after.token_bytes_aggregate >= before.token_bytes_aggregate >= before.token_bytes
    if tp >= max(layer.kv_heads for layer in model.layers):
        assert after.token_bytes_per_gpu == before.token_bytes_per_gpu


@given(names, engines, st.integers(1, 12))
def test_stages_together_are_the_model(name: str, engine: Any, pp: int) -> None:
    one, many = (plan(MODELS[name], Deployment(engine=engine, pp=stages)) for stages in (1, pp))
    assert many.token_bytes_aggregate == one.token_bytes_aggregate
    assert many.token_bytes_per_gpu * pp >= one.token_bytes_per_gpu


@given(names, settings, pools, lengths, st.integers(0, 50_000))
def test_bytes_held_never_exceed_the_pool(
    name: str, given_settings: Any, pool: int, length: int, output: int
) -> None:
    """The KV that fitting requests write (each element once) fits the pool of one GPU."""
    made = plan(MODELS[name], Deployment(**given_settings))
    load = Workload((Request(length, output),))
    fits = int(binding(make_pool(made, pool, 250_000).limits(load, "peak")).requests + 1e-9)
    growing = sum(cache.whole for cache in made.growing if not cache.window)
    assert fits * (growing * (length + output) + made.state_bytes) <= pool


@given(st.integers(1, 10**8), st.integers(0, 10**5), st.integers(0, 10**4), st.integers(1, 10**5))
def test_a_burst_is_never_larger_than_what_follows(pool: int, prompt: int, output: int, max_new: int) -> None:
    found = reservation(pool, prompt, output, max_new)
    assert found.burst.requests <= found.fresh.requests
    for admission in (found.burst, found.fresh, found.steady):
        assert 0 <= admission.usage_ratio <= 1


@given(st.floats(1, 1e9), st.floats(0, 1e9), st.floats(0.01, 0.5))
def test_every_difference_above_the_threshold_is_spoken_of(computed: float, observed: float, threshold: float) -> None:
    found = compare(computed, observed, threshold)
    assert found.within == (found.explanation == "")
    assert found.within == (abs(observed - computed) <= threshold * computed)


@given(names, settings, pools, lengths)
def test_every_result_can_be_printed(name: str, given_settings: Any, pool: int, length: int) -> None:
    found = estimate(MODELS[name], Deployment(**given_settings), Budget(pool), Workload((Request(length),)))
    data = as_data(found)
    assert data["kv_bytes_per_token"] > 0
    assert data["pool_tokens"] >= 0
    assert data["max_concurrency"] >= 0
    assert data["assumptions"]
    text = as_text(found)
    assert text.endswith("\n")
    assert f"{data['max_concurrency']:,} REQUESTS AT ONCE" in text
