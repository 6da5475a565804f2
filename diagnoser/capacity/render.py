"""A Capacity as text: one screen of 80 columns, the answer first, then what it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from diagnoser.capacity.compare import Comparison
from diagnoser.capacity.estimate import EFFICIENCY, Capacity
from diagnoser.capacity.plan import Plan
from diagnoser.capacity.sizes import human

WIDTH, LABEL = 80, 20


def as_text(capacity: Capacity, comparison: Comparison | None = None) -> str:
    """The screen, ending in a newline."""
    lines = [*_head(capacity), "", *_bytes(capacity.plan), *_pool(capacity), *_requests(capacity), *_reserved(capacity)]
    if comparison is not None:
        lines += ["", *_compared(comparison)]
    lines += ["", "  Assumed", *(line for note in capacity.notes for line in _wrap(note))]
    return "\n".join(lines) + "\n"


def _wrap(text: str, first: str = "  - ") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=False)


def _row(label: str, *parts: str) -> str:
    return f"  {label:<{LABEL}}" + " · ".join(part for part in parts if part)


def _head(capacity: Capacity) -> Iterator[str]:
    made = capacity.plan
    place = made.deployment
    ranks = "".join(f" {name}{n}" for name, n in (("PP", place.pp), ("DCP", place.dcp), ("DP", place.dp)) if n > 1)
    yield f"{made.model.name} · {place.engine} · TP{place.tp}{ranks} · KV {made.kv_dtype}"
    yield ""
    peak, size = capacity.at.get("peak"), capacity.size
    if size is None:
        yield f"  {human(made.token_bytes)} A TOKEN"
    elif peak is None:
        yield f"  {size.tokens:,} TOKENS"
    else:
        yield f"  {size.tokens:,} TOKENS · {peak.requests:,} REQUESTS AT ONCE · bound: {peak.bound.name}"


def _bytes(made: Plan) -> Iterator[str]:
    yield _row("layers", made.model.describe())
    yield _row(
        "bytes a token", f"{made.token_bytes:,} ({human(made.token_bytes)})",
        f"a GPU {human(float(made.token_bytes_per_gpu))}", f"all GPUs {human(float(made.token_bytes_aggregate))}",
    )
    if made.window_bytes():
        page = made.deployment.page
        yield _row(
            "window a request", human(made.window_bytes()), f"in blocks {human(made.window_bytes(page, 1))}",
            f"in prefill up to {human(made.window_bytes(page, made.deployment.in_flight))}",
        )
    if made.state_bytes:
        yield _row("state a request", human(made.state_bytes), f"a GPU {human(made.state_bytes_per_gpu)}")


def _pool(capacity: Capacity) -> Iterator[str]:
    size, memory, dp = capacity.size, capacity.budget, capacity.plan.deployment.dp
    if size is None or memory is None:
        return
    error = f"+-{human(memory.error_bytes)}" if memory.error_bytes else ""
    yield _row("pool a GPU", human(size.bytes_per_gpu), error)
    unit = "tokens" if size.tokens_exact else "equivalent tokens"
    between = f"{capacity.tokens_low:,} to {capacity.tokens_high:,}" if memory.error_bytes else ""
    yield _row("pool", f"{size.tokens:,} {unit}", between, f"{size.tokens * dp:,} over {dp} ranks" if dp > 1 else "")
    if size.blocks is not None:
        yield _row("blocks", f"{size.blocks:,} of {size.block_size} tokens", f"usable {max(0, size.blocks - 1):,}")
    extra = [f"{size.window_tokens:,} window tokens" if size.window_tokens is not None else "",
             f"{size.state_slots:,} state slots" if size.state_slots is not None else ""]
    if any(extra):
        yield _row("other pools", *extra)


def _requests(capacity: Capacity) -> Iterator[str]:
    if capacity.workload is None or not capacity.at:
        return
    yield ""
    for request in capacity.workload.requests:
        yield _row("request", f"prompt {request.prompt:,}", f"output {request.output:,}", f"weight {request.weight:g}")
    words = {"peak": "at their end", "mean": "on average", "admission": "at admission"}
    for moment, found in capacity.at.items():
        if moment == "admission" and capacity.reserved is not None:
            continue  # the engine reserves output as well: the table below
        tokens = capacity.workload.mean_length(moment)
        between = f"{found.low:,} to {found.high:,}" if found.low != found.high else ""
        parts = (f"{found.requests:,}", between, f"{tokens:,.0f} tokens each", found.bound.name)
        yield _row(f"fit {words[moment]}", *parts)
    mean = capacity.at["mean"].requests
    yield _row("run under load", f"about {mean * EFFICIENCY:,.0f}", f"{EFFICIENCY:.0%} of the average fit")


def _reserved(capacity: Capacity) -> Iterator[str]:
    found = capacity.reserved
    if found is None:
        return
    yield ""
    yield "  SGLang admits until the next is refused (output is reserved; KV tokens only)"
    for label, admission in (("in one burst", found.burst), ("just after", found.fresh), ("steady", found.steady)):
        yield _row(label, f"{admission.requests:,} requests", f"at usage {admission.usage_ratio:.2f}",
                   f"{admission.reserved_tokens:,} tokens reserved")


def _compared(comparison: Comparison) -> list[str]:
    if comparison.within:
        said = f"the engine reports {comparison.observed_tokens:,.0f} tokens, {comparison.difference_ratio:+.1%}"
        return _wrap(said, "  ")
    return _wrap(comparison.explanation, "  ")
