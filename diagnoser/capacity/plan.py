"""A model in a deployment: every cache on one GPU of its pipeline stage, and the bytes that follow.

Replication (vllm/config/model.py get_num_kv_heads, vllm/v1/kv_cache_interface.py max_tp_shards; SGLang model_config.py
get_num_kv_heads): KV heads are split over TP down to one a GPU, beyond that they are copied; an MLA row is copied on
every TP rank; DCP gives each rank 1/dcp of the tokens. Windows and states are not divided by DCP.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from diagnoser.capacity.deployment import Deployment
from diagnoser.capacity.dtypes import index_bytes, resolve_kv_dtype, row_bytes, state_bytes, state_dtypes
from diagnoser.capacity.layers import GROWING, WINDOWED, Kind, Layer, Model
from diagnoser.errors import CapacityError

SWA_POOL = frozenset({
    "Llama4ForConditionalGeneration", "GptOssForCausalLM", "GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM",
    "MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM", "Step3p5ForCausalLM", "Gemma4ForCausalLM",
    "Gemma4ForConditionalGeneration", "LagunaForCausalLM",
})
"""Architectures with a window pool of their own in SGLang 0.5.23 (is_hybrid_swa_model); the rest keep all tokens."""


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache on one GPU: `row` = bytes of a token stored there, `state` = bytes of a state.

    `whole` = the same for the whole model, each element once. `shards` = GPUs the tokens are spread over (dcp, else 1).
    """

    kind: Kind
    stage: int
    row: int = 0
    state: int = 0
    whole: int = 0
    window: int = 0
    shards: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """The caches of one replica. Bytes are exact for the shapes given; `notes` say what was assumed."""

    model: Model
    deployment: Deployment
    kv_dtype: str
    caches: tuple[Cache, ...]
    notes: tuple[str, ...] = ()

    @property
    def growing(self) -> tuple[Cache, ...]:
        """Caches that keep every token; where a model has none, its windows (then true up to the window only)."""
        found = tuple(cache for cache in self.caches if cache.kind in GROWING)
        return found or tuple(cache for cache in self.caches if cache.kind in WINDOWED)

    @property
    def token_bytes(self) -> int:
        """Bytes one more token costs, each element counted once: the number usually quoted for a model."""
        return sum(cache.whole for cache in self.growing)

    @property
    def token_bytes_per_gpu(self) -> Fraction:
        """Bytes one more token costs on the busiest GPU, averaged over DCP ranks."""
        return max((_sum(c for c in self.growing if c.stage == stage) for stage in self.stages), default=Fraction(0))

    @property
    def token_bytes_aggregate(self) -> Fraction:
        """Bytes one more token costs on all GPUs of a replica, copies included."""
        return _sum(self.growing) * self.deployment.tp

    @property
    def state_bytes_per_gpu(self) -> int:
        """Bytes of one set of states on the busiest GPU."""
        return max((sum(c.state for c in self.caches if c.stage == stage) for stage in self.stages), default=0)

    @property
    def state_bytes(self) -> int:
        """Bytes of one set of states of the whole model."""
        return sum(cache.whole for cache in self.caches if cache.kind is Kind.STATE)

    def window_bytes(self, block: int = 1, in_flight: int = 0) -> int:
        """Bytes the windows of one long request hold, whole model: exact (block 1), paged, or with tokens in flight."""
        windows = [cache for cache in self.caches if cache.kind in WINDOWED]
        return sum(cache.whole * window_tokens(cache.kind, cache.window, block, in_flight) for cache in windows)

    @property
    def stages(self) -> range:
        """Pipeline stages."""
        return range(self.deployment.pp)


def _sum(caches: Iterable[Cache]) -> Fraction:
    return sum((Fraction(cache.row, cache.shards) for cache in caches), Fraction(0))


def window_tokens(kind: Kind, window: int, block: int, in_flight: int) -> int:
    """Tokens a window keeps resident. Paged: blocks = ceil((window - 1 + in_flight) / block) + 1 for a sliding window,
    ceil((window + in_flight) / block) for a chunk (max_admission_blocks_per_request, vLLM 0.32.0)."""
    if block == 1 and not in_flight:
        return window
    if kind is Kind.CHUNKED:
        return -(-(window + in_flight) // block) * block
    return (-(-(window - 1 + in_flight) // block) + 1) * block


def plan(model: Model, deployment: Deployment) -> Plan:
    """Every cache of the model on one GPU of this deployment."""
    dtype, sentence = resolve_kv_dtype(model, deployment.kv_dtype)
    notes = [*model.notes, sentence]
    layers = _placed(model, deployment, notes)
    sizes = state_dtypes(model, deployment.state_dtype, deployment.engine)
    kept = [(layer, stage) for layer, stage in layers if layer.kind is not Kind.NONE]
    caches = tuple(_cache(layer, stage, deployment, dtype, sizes) for layer, stage in kept)
    if not caches:
        raise CapacityError(f"{model.name}: no layer keeps anything")
    if any(cache.state for cache in caches):
        notes.append(f"states: convolution {sizes[0]} bytes an element, recurrence {sizes[1]} (--state-dtype)")
    return Plan(model, deployment, dtype, caches, tuple(notes))


def _placed(model: Model, deployment: Deployment, notes: list[str]) -> list[tuple[Layer, int]]:
    """Layers with their pipeline stage; windows made full where the engine keeps all tokens; draft layers added."""
    count = 1 + max((layer.index for layer in model.layers), default=0)
    ends = _stage_ends(count, deployment.pp)
    layers = [(layer, sum(layer.index >= end for end in ends)) for layer in model.layers]
    if any(layer.kind in WINDOWED for layer in model.layers) and not _keeps_windows(model, deployment, notes):
        layers = [(_opened(layer), stage) for layer, stage in layers]
    if deployment.draft_layers:
        layers += [(_draft(model), deployment.pp - 1)] * deployment.draft_layers
        notes.append(f"{deployment.draft_layers} draft layers of the target's size a layer, on the last stage")
    elif model.mtp_layers:
        notes.append(f"{model.mtp_layers} MTP layers are not counted; if used: --draft-layers {model.mtp_layers}")
    return layers


def _opened(layer: Layer) -> Layer:
    return replace(layer, kind=Kind.FULL, window=0) if layer.kind in WINDOWED else layer


def _draft(model: Model) -> Layer:
    """The layer a draft layer is like: the target's last full one, else its last window."""
    found = model.of(*GROWING) or model.of(*WINDOWED)
    if not found:
        raise CapacityError(f"{model.name}: has no attention layer a draft layer could be like")
    return found[-1]


def _stage_ends(count: int, pp: int) -> list[int]:
    """Layers before the end of each stage but the last; the remainder goes to the stages before it (get_pp_indices)."""
    if pp > count:
        raise CapacityError(f"{count} layers cannot be spread over PP {pp}")
    sizes = [count // pp] * pp
    for back in range(2, count % pp + 2):
        sizes[-back] += 1
    return [sum(sizes[: stage + 1]) for stage in range(pp - 1)]


def _keeps_windows(model: Model, deployment: Deployment, notes: list[str]) -> bool:
    if not deployment.hybrid:
        notes.append("window layers keep every token (hybrid memory switched off)")
        return False
    if deployment.engine == "sglang" and model.architecture and model.architecture not in SWA_POOL:
        notes.append(f"SGLang 0.5.23 has no window pool for {model.architecture}: window layers keep every token")
        return False
    return True


def _cache(layer: Layer, stage: int, deployment: Deployment, dtype: str, sizes: tuple[int, int]) -> Cache:
    if layer.state is not None:
        whole = state_bytes(layer.state, 1, sizes)
        return Cache(layer.kind, stage, state=state_bytes(layer.state, deployment.tp, sizes), whole=whole)
    if layer.kind is Kind.LATENT:
        index = index_bytes(layer)
        copied = index * (deployment.dcp if deployment.engine == "sglang" else 1)
        row = row_bytes(layer, 1, dtype)
        return Cache(layer.kind, stage, row + copied, whole=row + index, shards=deployment.dcp)
    shards = deployment.dcp if layer.kind is Kind.FULL else 1
    heads = _local_heads(layer, deployment, shards)
    whole = row_bytes(layer, layer.kv_heads, dtype)
    return Cache(layer.kind, stage, row_bytes(layer, heads, dtype), whole=whole, window=layer.window, shards=shards)


def _local_heads(layer: Layer, deployment: Deployment, shards: int) -> int:
    """KV heads on one GPU: kv_heads // (tp // dcp), at least one."""
    tp, heads = deployment.tp, layer.kv_heads
    if deployment.engine == "vllm" and shards > max(1, tp // max(1, heads)):
        raise CapacityError(f"dcp {shards} exceeds tp / kv_heads = {tp} / {heads}: vLLM shards tokens over copies only")
    groups = tp // shards
    if heads < 1 or (heads % groups and groups % heads):
        raise CapacityError(f"{heads} KV heads cannot be spread over TP {groups}: neither divides the other")
    return max(1, heads // groups)
