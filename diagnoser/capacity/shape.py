"""A model from a few numbers, for which no config.json is at hand."""

from __future__ import annotations

from dataclasses import dataclass

from diagnoser.capacity.layers import Kind, Layer, Model
from diagnoser.errors import CapacityError


@dataclass(frozen=True, slots=True)
class Shape:
    """Attention (`kv_heads`, `head_dim`) or MLA (`kv_lora_rank`, `rope_dim`, `index_dim` for DSA) in `layers` layers.

    `window_layers` of them keep only `window` tokens: a sliding window, or a chunk if `chunked`. All sizes in elements.
    """

    layers: int
    kv_heads: int | None = None
    head_dim: int | None = None
    v_head_dim: int | None = None
    kv_lora_rank: int | None = None
    rope_dim: int | None = None
    index_dim: int | None = None
    window: int | None = None
    window_layers: int = 0
    chunked: bool = False
    dtype: str = "bfloat16"

    def model(self) -> Model:
        """The model of these numbers. Raises CapacityError that names the flag which is missing."""
        if self.layers < 1 or not 0 <= self.window_layers <= self.layers:
            raise CapacityError("--layers must be at least 1 and --window-layers between 0 and --layers")
        if self.window_layers and not self.window:
            raise CapacityError("--window-layers needs --window, the tokens such a layer keeps")
        full = self.layers - self.window_layers
        rows = [self._growing(index) for index in range(full)]
        rows += [self._windowed(index) for index in range(full, self.layers)]
        return Model("shape", tuple(rows), dtype=self.dtype)

    def _growing(self, index: int) -> Layer:
        if self.kv_lora_rank is None:
            return self._attention(Kind.FULL, index, 0)
        if self.rope_dim is None:
            raise CapacityError("--kv-lora-rank needs --rope-dim (qk_rope_head_dim, 64 in DeepSeek-V3)")
        index_dim = self.index_dim or 0
        return Layer(Kind.LATENT, index, 1, self.kv_lora_rank, rope_dim=self.rope_dim, index_dim=index_dim)

    def _windowed(self, index: int) -> Layer:
        return self._attention(Kind.CHUNKED if self.chunked else Kind.SLIDING, index, self.window or 0)

    def _attention(self, kind: Kind, index: int, window: int) -> Layer:
        if not self.kv_heads or not self.head_dim:
            missing = "--kv-heads" if not self.kv_heads else "--head-dim"
            raise CapacityError(f"{missing} is missing: attention layers need --kv-heads and --head-dim")
        v_dim = self.head_dim if self.v_head_dim is None else self.v_head_dim
        return Layer(kind, index, kv_heads=self.kv_heads, k_dim=self.head_dim, v_dim=v_dim, window=window)
