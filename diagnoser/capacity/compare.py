"""A computed pool against the engine's own (kv_cache_size_tokens, max_total_num_tokens): explained or reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from diagnoser.capacity.plan import Plan, plan
from diagnoser.errors import CapacityError

THRESHOLD_RATIO, MATCH_RATIO = 0.10, 0.03


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One difference in settings that would make the engine's pool `factor` times the computed one."""

    factor: float
    sentence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`difference_ratio` = observed / computed - 1. `explanation` is empty within the threshold."""

    computed_tokens: float
    observed_tokens: float
    difference_ratio: float
    within: bool
    explanation: str = ""
    explained: bool = False
    """True when one known setting accounts for the difference."""


COMMON = (
    Hypothesis(2.0, "the engine keeps its KV cache in 8 bits, 16 were assumed (--kv-dtype)"),
    Hypothesis(0.5, "the engine keeps its KV cache in 16 bits, 8 were assumed (--kv-dtype)"),
)


def compare(
    computed_tokens: float, observed_tokens: float, threshold: float = THRESHOLD_RATIO,
    hypotheses: Sequence[Hypothesis] = COMMON,
) -> Comparison:
    """The difference, with an explanation when it is above `threshold` (a share of the computed size)."""
    if not computed_tokens > 0 or observed_tokens < 0:
        raise CapacityError(f"cannot compare {observed_tokens:,} observed with {computed_tokens:,} computed tokens")
    ratio = observed_tokens / computed_tokens
    if abs(observed_tokens - computed_tokens) <= threshold * computed_tokens:
        return Comparison(computed_tokens, observed_tokens, ratio - 1, True)
    near = [h for h in hypotheses if h.factor > 0 and abs(ratio / h.factor - 1) <= MATCH_RATIO]
    best = min(near, key=lambda h: abs(ratio / h.factor - 1), default=None)
    said = f"the engine reports {observed_tokens:,.0f} tokens, {ratio:.2f} times the {computed_tokens:,.0f} computed"
    if best is not None:
        return Comparison(computed_tokens, observed_tokens, ratio - 1, False, f"{said}: {best.sentence}", True)
    return Comparison(computed_tokens, observed_tokens, ratio - 1, False, f"{said}; {_unexplained(ratio)}")


def _unexplained(ratio: float) -> str:
    if ratio < 1:
        return (
            "no one setting explains it: less memory was left than assumed (weights, activations, CUDA graphs, a lower"
            " fraction, another process) or the pool was capped (--num-gpu-blocks-override, --max-total-tokens)"
        )
    return "no one setting explains it: more memory was left than assumed (weights, activations, a higher fraction)"


def hypotheses_for(made: Plan) -> tuple[Hypothesis, ...]:
    """What could differ on a live engine of this model: KV dtype, windows, draft layers, sums over GPUs and ranks."""
    return (*_settings(made), *_sums(made))


def _settings(made: Plan) -> Iterator[Hypothesis]:
    deployment, model = made.deployment, made.model
    for dtype in ("bfloat16", "fp8_plain", "fp8_ds_mla", "nvfp4", "mxfp8", "float32"):
        factor = _factor(made, kv_dtype=dtype)
        if factor is not None:
            yield Hypothesis(factor, f"the engine's KV dtype is {dtype}, {made.kv_dtype} was assumed (--kv-dtype)")
    layers = 0 if deployment.draft_layers else max(1, model.mtp_layers)
    factor = _factor(made, draft_layers=layers)
    if factor is not None:
        yield Hypothesis(factor, f"the engine counts {layers} draft layers, {deployment.draft_layers} were assumed")
    factor = _factor(made, hybrid=not deployment.hybrid)
    if factor is not None:
        yield Hypothesis(factor, "window layers keep every token on one side only (hybrid memory)")


def _factor(made: Plan, **changes: object) -> float | None:
    """How many times the tokens with these settings instead, None where they are impossible or change nothing."""
    try:
        other = plan(made.model, replace(made.deployment, **changes))  # type: ignore[arg-type]
    except CapacityError:
        return None
    factor = float(made.token_bytes_per_gpu / other.token_bytes_per_gpu)
    return None if abs(factor - 1) < 1e-9 else factor


def _sums(made: Plan) -> Iterator[Hypothesis]:
    deployment = made.deployment
    for count, what in ((deployment.dp, "data-parallel ranks (num_gpu_blocks of vLLM is such a sum)"),
                        (deployment.gpus, "GPUs of a replica"), (deployment.dcp, "context-parallel ranks")):
        if count > 1:
            yield Hypothesis(count, f"the engine's number is a sum over {count} {what}")
            yield Hypothesis(1 / count, f"the computed number is a sum over {count} {what}, the engine's is not")
