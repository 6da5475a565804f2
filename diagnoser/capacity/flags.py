"""The flags of `diagnose capacity`. Engine flags keep the engines' names."""

from __future__ import annotations

import argparse

from diagnoser.capacity.compare import THRESHOLD_RATIO
from diagnoser.capacity.deployment import Deployment
from diagnoser.capacity.dtypes import KV_DTYPES

DEFAULTS = Deployment()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every flag to `parser`. Sizes are 60GiB, 60GB or bytes; tokens 32768 or 32K."""
    _model(parser.add_argument_group("model"))
    _deployment(parser.add_argument_group("deployment"))
    _engine(parser.add_argument_group("engine settings"))
    _pool(parser.add_argument_group("pool: one of --pool-bytes, --pool-total, --gpu-memory"))
    _load(parser.add_argument_group("requests"))
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=("text", "json"), default="text")


def _model(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("model_config", nargs="?", metavar="CONFIG", help="Hugging Face config.json, or a folder that holds one")
    add("--config", metavar="FILE", help="the same as a flag")
    add("--layers", type=int, metavar="N", help="shape without a config (no state layers): number of layers")
    add("--kv-heads", type=int, metavar="N", help="KV heads (1 for MQA)")
    add("--head-dim", type=int, metavar="N", help="elements of a key (and of a value unless --v-head-dim)")
    add("--v-head-dim", type=int, metavar="N", help="elements of a value")
    add("--kv-lora-rank", type=int, metavar="N", help="MLA: elements of the latent (512 in DeepSeek-V3)")
    add("--rope-dim", type=int, metavar="N", help="MLA: qk_rope_head_dim (64)")
    add("--index-head-dim", type=int, metavar="N", help="DSA: elements of the index key (128)")
    add("--window", type=int, metavar="N", help="tokens a window layer keeps")
    add("--window-layers", type=int, default=0, metavar="N", help="how many of --layers have the window")
    add("--chunked", action="store_true", help="the window is a chunk (Llama 4), not sliding")


def _deployment(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--engine", choices=("vllm", "sglang"), default=DEFAULTS.engine)
    add("--tp", type=int, default=1, metavar="N", help="tensor parallel size (with DP attention: tp_size / dp_size)")
    add("--pp", type=int, default=1, metavar="N", help="pipeline parallel size")
    add("--dcp", type=int, default=1, metavar="N", help="decode context parallel size")
    add("--dp", type=int, default=1, metavar="N", help="data-parallel ranks, each with a pool of its own")
    add("--kv-dtype", "--kv-cache-dtype", choices=KV_DTYPES, default="auto", metavar="DTYPE", help=", ".join(KV_DTYPES))
    add("--state-dtype", default="auto", metavar="DTYPE", help="recurrent states: bfloat16 or float32 (auto: engine's)")
    add("--block-size", "--page-size", type=int, metavar="N", help="tokens a block or page (vLLM 16, SGLang 1)")
    add("--draft-layers", type=int, default=0, metavar="N", help="layers of an MTP or EAGLE head")
    add("--lookahead-tokens", type=int, default=0, metavar="N", help="speculated tokens a running request holds")


def _engine(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--max-model-len", "--context-length", metavar="TOKENS", help="longest request (default: the model's)")
    add("--max-num-seqs", "--max-running-requests", type=int, metavar="N", help="slot limit")
    add("--batch-tokens", "--max-num-batched-tokens", "--chunked-prefill-size", type=int, default=DEFAULTS.batch_tokens,
        metavar="N", help="tokens of one batch (%(default)s)")
    add("--batches", type=int, default=DEFAULTS.batches, metavar="N", help="batches in flight (%(default)s)")
    add("--no-prefix-caching", "--disable-radix-cache", action="store_true", help="prefix cache off: fewer states")
    add("--no-hybrid", "--disable-hybrid-kv-cache-manager", action="store_true", help="window layers keep every token")
    add("--swa-full-tokens-ratio", type=float, default=DEFAULTS.swa_ratio, metavar="R", help="SGLang (%(default)s)")
    add("--mamba-full-memory-ratio", type=float, default=DEFAULTS.state_ratio, metavar="R", help="SGLang (%(default)s)")
    add("--schedule-conservativeness", type=float, default=1.0, metavar="R", help="SGLang (%(default)s)")


def _pool(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--pool-bytes", "--kv-cache-memory-bytes", metavar="SIZE", help="KV pool of ONE GPU: 60GiB, 60GB, bytes")
    add("--pool-total", metavar="SIZE", help="KV pool summed over the GPUs of one replica")
    add("--gpu-memory", metavar="SIZE", help="memory of one GPU; pool = memory x fraction - weights - reserve")
    add("--memory-fraction", "--gpu-memory-utilization", "--mem-fraction-static", type=float, metavar="F",
        help="vLLM 0.92; SGLang derives it")
    add("--weights", metavar="SIZE", help="all weights of a replica (default: estimated from the config)")
    add("--reserve", metavar="SIZE", help="activations and CUDA graphs of one GPU (vLLM: 3GiB assumed)")


def _load(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--prompt", "--input-len", metavar="TOKENS", help="tokens of a prompt, e.g. 32K")
    add("--output", "--output-len", metavar="TOKENS", help="tokens of an output")
    add("--request", action="append", metavar="PROMPT:OUTPUT[:WEIGHT]",
        help="one kind of request; repeat for a mix, weights are shares of the running requests")
    add("--max-tokens", metavar="TOKENS", help="SGLang: max_new_tokens clients set (not set: 4,096 are reserved)")
    add("--observed-tokens", metavar="TOKENS", help="the engine's own pool size, to compare")
    add("--threshold", type=float, default=THRESHOLD_RATIO, metavar="R", help="explain differences above (%(default)s)")
