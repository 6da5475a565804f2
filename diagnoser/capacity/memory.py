"""Bytes of the KV pool on one GPU, from its memory: memory x fraction - weights - reserve, and the error."""

from __future__ import annotations

from dataclasses import dataclass

from diagnoser.capacity.deployment import Deployment
from diagnoser.capacity.layers import Model
from diagnoser.capacity.sizes import human
from diagnoser.capacity.weights import ERROR_DENSE, ERROR_QUANTISED
from diagnoser.errors import CapacityError

GIB = 1024**3
VLLM_FRACTION = 0.92
"""--gpu-memory-utilization, vllm/config/cache.py:102 (0.32.0)."""
VLLM_RESERVE, VLLM_RESERVE_ERROR = 3 * GIB, 2 * GIB
"""Activations at the largest batch and CUDA graphs, which vLLM measures at start. A guess, not measured here."""
SGLANG_RESERVE, SGLANG_RESERVE_SMALL, SGLANG_LARGE = 10 * GIB, 9 * GIB // 2, 60 * GIB
"""What SGLang leaves outside mem_fraction_static above and below 60 GiB (arg_groups/memory_hook.py; more with TP)."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Pool bytes on each GPU, and by how many of them the estimate may be off (0 where they were given)."""

    bytes_per_gpu: int
    error_bytes: int = 0
    weights_per_gpu: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """Memory of one GPU in bytes; what is None is taken from the engine's defaults or estimated from the model.

    `weights` = bytes of all weights, over all GPUs of a replica.
    """

    memory: int
    fraction: float | None = None
    weights: int | None = None
    reserve: int | None = None


def budget(model: Model, deployment: Deployment, gpu: Gpu) -> Budget:
    """The pool on one GPU. Raises CapacityError when the weights do not fit or cannot be estimated."""
    notes: list[str] = []
    share, share_error = _share(deployment, gpu, notes)
    weights, weights_error = _weights(model, deployment, gpu, notes)
    left = share - weights
    if left <= 0:
        raise CapacityError(
            f"no room for a KV pool: weights take {human(weights)} a GPU, {human(max(0, share))} of"
            f" {human(gpu.memory)} are there for them"
        )
    return Budget(left, share_error + weights_error, weights, tuple(notes))


def _share(deployment: Deployment, gpu: Gpu, notes: list[str]) -> tuple[int, int]:
    """(bytes for weights and KV, their error)."""
    if deployment.engine == "vllm":
        fraction = VLLM_FRACTION if gpu.fraction is None else gpu.fraction
        reserve = VLLM_RESERVE if gpu.reserve is None else gpu.reserve
        error = VLLM_RESERVE_ERROR if gpu.reserve is None else 0
        said = f"activations and CUDA graphs take {human(reserve)}"
        notes.append(f"memory fraction {fraction:g}; {said}" + (f" (assumed, +-{human(error)})" if error else ""))
    else:
        outside = SGLANG_RESERVE if gpu.memory > SGLANG_LARGE else SGLANG_RESERVE_SMALL
        fraction = max(0.0, 1 - outside / gpu.memory) if gpu.fraction is None else gpu.fraction
        reserve, error = gpu.reserve or 0, 2 * GIB if gpu.fraction is None else 0
        assumed = f" (assumed: {human(outside)} outside it, as SGLang derives it)" if gpu.fraction is None else ""
        notes.append(f"mem_fraction_static {fraction:.3f}{assumed}")
    if not 0 < fraction <= 1:
        raise CapacityError(f"the memory fraction {fraction:g} must lie in (0, 1]")
    return int(gpu.memory * fraction) - reserve, error


def _weights(model: Model, deployment: Deployment, gpu: Gpu, notes: list[str]) -> tuple[int, int]:
    """(bytes of weights on one GPU, their error)."""
    if gpu.weights is not None:
        return gpu.weights // deployment.gpus, 0
    if model.weights is None:
        raise CapacityError(f"{model.name}: no hidden_size or vocab_size to estimate weights from; give --weights")
    total = model.weights.bytes(2)
    ratio = ERROR_QUANTISED if model.weights.quantised else ERROR_DENSE
    kind = f"{model.weights.bits:g}-bit where quantised" if model.weights.quantised else "2 bytes each"
    notes.append(
        f"weights {human(total)} estimated: {model.weights.parameters / 1e9:.1f}e9 parameters, {kind}, +-{ratio:.0%};"
        f" split evenly over {deployment.gpus} GPUs"
    )
    return total // deployment.gpus, int(total * ratio) // deployment.gpus
