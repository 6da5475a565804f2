"""`diagnose capacity`: flags to Capacity to text or JSON. The command line mounts add_arguments and run.

Every error is a CapacityError (exit 64), raised by run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from diagnoser.capacity.compare import Comparison, compare, hypotheses_for
from diagnoser.capacity.config import load_model
from diagnoser.capacity.data import as_data
from diagnoser.capacity.deployment import Deployment
from diagnoser.capacity.estimate import Capacity, estimate
from diagnoser.capacity.flags import add_arguments
from diagnoser.capacity.layers import Model
from diagnoser.capacity.memory import Budget, Gpu, budget
from diagnoser.capacity.render import as_text
from diagnoser.capacity.shape import Shape
from diagnoser.capacity.sizes import parse_bytes, parse_tokens
from diagnoser.capacity.workload import Request, Workload
from diagnoser.errors import CapacityError

__all__ = ["add_arguments", "computed", "run"]


def run(args: argparse.Namespace) -> int:
    """Print the capacity. Returns 0."""
    capacity, comparison = computed(args, model_of(args))
    if args.format == "json":
        sys.stdout.write(json.dumps(as_data(capacity, comparison), indent=2) + "\n")
    else:
        sys.stdout.write(as_text(capacity, comparison))
    return 0


def computed(args: argparse.Namespace, model: Model) -> tuple[Capacity, Comparison | None]:
    """The capacity of that model with the flags, and its comparison with what an engine reports."""
    deployment = _deployment(args)
    max_new = None if args.max_tokens is None else parse_tokens(args.max_tokens)
    capacity = estimate(
        model,
        deployment,
        _memory(args, model, deployment),
        _workload(args),
        max_new=max_new,
        conservativeness=args.schedule_conservativeness,
    )
    return capacity, _comparison(args, capacity)


def model_of(args: argparse.Namespace) -> Model:
    """The model of a config.json, or of a shape."""
    given = [path for path in (args.model_config, args.config) if path is not None]
    if len(given) + (args.layers is not None) > 1:
        raise CapacityError("give one config.json, or the shape (--layers ...), not both")
    if given:
        return load_model(Path(given[0]))
    if args.layers is None:
        raise CapacityError("give a config.json or a shape: --layers with --kv-heads, --head-dim or --kv-lora-rank")
    return Shape(
        layers=args.layers,
        kv_heads=args.kv_heads,
        head_dim=args.head_dim,
        v_head_dim=args.v_head_dim,
        kv_lora_rank=args.kv_lora_rank,
        rope_dim=args.rope_dim,
        index_dim=args.index_head_dim,
        window=args.window,
        window_layers=args.window_layers,
        chunked=args.chunked,
    ).model()


def _deployment(args: argparse.Namespace) -> Deployment:
    length = None if args.max_model_len is None else parse_tokens(args.max_model_len)
    return Deployment(
        engine=args.engine,
        tp=args.tp,
        pp=args.pp,
        dcp=args.dcp,
        dp=args.dp,
        kv_dtype=args.kv_dtype,
        state_dtype=args.state_dtype,
        block_size=args.block_size,
        draft_layers=args.draft_layers,
        lookahead=args.lookahead_tokens,
        batch_tokens=args.batch_tokens,
        batches=args.batches,
        prefix_caching=not args.no_prefix_caching,
        hybrid=not args.no_hybrid,
        swa_ratio=args.swa_full_tokens_ratio,
        state_ratio=args.mamba_full_memory_ratio,
        slots=args.max_num_seqs,
        max_length=length,
    )


def _memory(args: argparse.Namespace, model: Model, deployment: Deployment) -> Budget | None:
    """The pool bytes of one GPU, given or computed; None when neither was asked for."""
    given = [name for name in ("pool_bytes", "pool_total", "gpu_memory") if getattr(args, name) is not None]
    if len(given) > 1:
        raise CapacityError(f"give one of {', '.join('--' + name.replace('_', '-') for name in given)}")
    if not given:
        return None
    size = parse_bytes(getattr(args, given[0]))
    if given[0] == "pool_bytes":
        return Budget(size)
    if given[0] == "pool_total":
        return Budget(size // deployment.gpus, notes=(f"the pool is split evenly over {deployment.gpus} GPUs",))
    weights, reserve = (None if text is None else parse_bytes(text) for text in (args.weights, args.reserve))
    return budget(model, deployment, Gpu(size, args.memory_fraction, weights, reserve))


def _workload(args: argparse.Namespace) -> Workload | None:
    requests = [_request(text) for text in args.request or ()]
    if args.prompt is not None or args.output is not None:
        requests.append(Request(*(parse_tokens(text or "0") for text in (args.prompt, args.output))))
    return Workload(tuple(requests)) if requests else None


def _request(text: str) -> Request:
    """PROMPT:OUTPUT or PROMPT:OUTPUT:WEIGHT."""
    parts = text.split(":")
    try:
        if len(parts) not in (2, 3):
            raise ValueError(text)
        weight = float(parts[2]) if len(parts) == 3 else 1.0
    except ValueError as error:
        raise CapacityError(f"--request {text!r}: write PROMPT:OUTPUT or PROMPT:OUTPUT:WEIGHT") from error
    return Request(parse_tokens(parts[0]), parse_tokens(parts[1]), weight)


def _comparison(args: argparse.Namespace, capacity: Capacity) -> Comparison | None:
    if args.observed_tokens is None:
        return None
    if capacity.size is None:
        raise CapacityError("--observed-tokens needs a pool: --pool-bytes, --pool-total or --gpu-memory")
    observed, hypotheses = parse_tokens(args.observed_tokens), hypotheses_for(capacity.plan)
    return compare(capacity.size.tokens, observed, args.threshold, hypotheses)
