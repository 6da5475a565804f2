"""What one layer of a model keeps in device memory. No engine, no parallelism, no dtype: shapes only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How the memory of a layer grows with the length of a request."""

    FULL = "full"
    """Keys and values of every token: MHA, GQA, MQA."""
    LATENT = "latent"
    """One compressed vector of every token (MLA), with an index key where attention is sparse (DSA)."""
    SLIDING = "sliding"
    """Keys and values of the last `window` tokens."""
    CHUNKED = "chunked"
    """Keys and values of the current chunk of `window` tokens (Llama 4)."""
    STATE = "state"
    """A state of constant size for each request: mamba, gated delta net, linear attention."""
    NONE = "none"
    """Nothing: MLP-only layers, layers that read another layer's cache, cross-attention (ignored, noted)."""


GROWING = frozenset({Kind.FULL, Kind.LATENT})
WINDOWED = frozenset({Kind.SLIDING, Kind.CHUNKED})


@dataclass(frozen=True, slots=True)
class State:
    """Shape of one recurrent state in elements, for the whole model (before tensor parallelism).

    The convolution keeps (inner + 2 x groups x group_dim) x (kernel - 1) elements, the recurrence `recurrent`.
    """

    inner: int
    recurrent: int
    kernel: int = 1
    groups: int = 0
    group_dim: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """One cache of one layer. `index` is the layer's place in the model (a layer may own two caches: Falcon-H1).

    Attention: `kv_heads` x (`k_dim` + `v_dim`) elements a token. Latent: `k_dim` + `rope_dim` elements a token, and
    `index_dim` elements of index key. `window` in tokens.
    """

    kind: Kind
    index: int = 0
    kv_heads: int = 0
    k_dim: int = 0
    v_dim: int = 0
    rope_dim: int = 0
    index_dim: int = 0
    window: int = 0
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of the model, counted from its config: `dense` stay in the model dtype, `quantised` may be smaller."""

    dense: int
    quantised: int = 0
    bits: float = 16.0
    """Bits a quantised parameter with its scales."""

    def bytes(self, dense_bytes: float) -> int:
        """Bytes of all weights, with `dense_bytes` bytes for each parameter that is not quantised."""
        return round(self.dense * dense_bytes + self.quantised * self.bits / 8)

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.dense + self.quantised


@dataclass(frozen=True, slots=True)
class Model:
    """A model as far as its caches go. `notes` are what was assumed while reading it."""

    name: str
    layers: tuple[Layer, ...]
    architecture: str = ""
    dtype: str = "bfloat16"
    max_length: int | None = None
    mtp_layers: int = 0
    state_dtype: str | None = None
    cache_dtype: str | None = None
    """KV dtype the checkpoint asks for (kv_cache_scheme), used when the deployment says auto."""
    weights: Weights | None = None
    notes: tuple[str, ...] = ()

    def of(self, *kinds: Kind) -> tuple[Layer, ...]:
        """The layers of these kinds, in order."""
        return tuple(layer for layer in self.layers if layer.kind in kinds)

    @property
    def sparse(self) -> bool:
        """True for DSA: latent layers with an index key."""
        return any(layer.index_dim for layer in self.layers)

    def describe(self) -> str:
        """The layers in words, e.g. "12 full, 36 state"."""
        counts = Counter("dsa" if layer.index_dim else layer.kind.value for layer in self.layers)
        return ", ".join(f"{count} {kind}" for kind, count in counts.items())
