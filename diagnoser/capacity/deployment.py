"""How a model is deployed: engine, parallelism, KV dtype and block size. Defaults are the engines' own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diagnoser.errors import CapacityError

Engine = Literal["vllm", "sglang"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """One replica. `tp`, `pp`, `dcp` split one KV pool over tp x pp GPUs; `dp` counts separate pools.

    With SGLang's DP attention give the attention parallelism: tp = tp_size / dp_size.
    """

    engine: Engine = "vllm"
    tp: int = 1
    pp: int = 1
    dcp: int = 1
    dp: int = 1
    kv_dtype: str = "auto"
    state_dtype: str = "auto"
    block_size: int | None = None
    """Tokens a block (vLLM, 16) or page (SGLang, 1). vLLM enlarges it for models with states."""
    draft_layers: int = 0
    """Layers of a draft or MTP head, each of the target's size a layer."""
    lookahead: int = 0
    """Tokens of speculation that a running request holds beyond its own."""
    batch_tokens: int = 8192
    """max_num_batched_tokens (vLLM) or chunked_prefill_size (SGLang): tokens of one batch in flight."""
    batches: int = 2
    """Batches in flight: 2 with asynchronous scheduling (the default), then one more for each pipeline stage."""
    prefix_caching: bool = True
    hybrid: bool = True
    """False: every window layer is treated as full (--disable-hybrid-kv-cache-manager, --disable-hybrid-swa-memory)."""
    swa_ratio: float = 0.8
    """SGLang --swa-full-tokens-ratio."""
    state_ratio: float = 0.9
    """SGLang --mamba-full-memory-ratio."""
    slots: int | None = None
    """max_num_seqs or max_running_requests, None if not known."""
    max_length: int | None = None
    """max_model_len or context length; the model's own if None."""

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "dcp", "dp", "batches"):
            if getattr(self, name) < 1:
                raise CapacityError(f"{name} is {getattr(self, name)}: at least 1 is needed")
        for name in ("draft_layers", "lookahead", "batch_tokens"):
            if getattr(self, name) < 0:
                raise CapacityError(f"{name} is {getattr(self, name)}: it cannot be negative")
        for name in ("block_size", "slots", "max_length"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise CapacityError(f"{name} is {value}: at least 1 is needed")
        if self.tp % self.dcp:
            raise CapacityError(f"tp {self.tp} cannot be divided by dcp {self.dcp}")
        if not 0 < self.swa_ratio <= 1 or self.state_ratio <= 0:
            raise CapacityError("the SWA ratio must lie in (0, 1] and the state ratio above 0")

    @property
    def gpus(self) -> int:
        """GPUs that share one KV pool."""
        return self.tp * self.pp

    @property
    def page(self) -> int:
        """Tokens a block or page before vLLM's alignment to states."""
        return self.block_size or (16 if self.engine == "vllm" else 1)

    @property
    def in_flight(self) -> int:
        """Tokens scheduled but not settled: vLLM's max_in_flight_tokens (vllm/config/vllm.py, 0.32.0)."""
        return self.batch_tokens * (self.batches + self.pp - 1)
