"""How much room one page shows, what the head needs, and whether it would fit. Defines no signal itself."""

from __future__ import annotations

import math

from diagnoser.model import Histogram, Snapshot
from diagnoser.signals.promql import (
    Edge,
    Expr,
    First,
    Gauge,
    Grew,
    IfTold,
    Label,
    Number,
    Observed,
    Of,
    Over,
    Ranks,
    Recently,
    Told,
    Trait,
    Unless,
)
from diagnoser.signals.view import Found, Missing, View, grown_between

CLIP_TOKENS = 4096.0
"""SGLang reserves at most this much output a request (SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION, sglang/srt/environ.py)."""
RATIO_START, RATIO_FLOOR = 0.7, 0.098
RATIO_DECAY = (RATIO_START - RATIO_FLOOR) / 600
"""new_token_ratio starts here and loses this much a decode step, down to the floor, all times conservativeness
(sglang/srt/environ.py). The start is assumed where the gauge is not exported: it reserves most."""


# ---------------------------------------------------------------- one page


def used(snapshot: Snapshot) -> float | None:
    """Tokens held by requests."""
    value = snapshot.pool.used
    return value if isinstance(value, float | int) else None


def free(snapshot: Snapshot) -> float | None:
    """Tokens a new request could get: evictable plus available."""
    held, capacity = used(snapshot), snapshot.pool.capacity
    return None if held is None or capacity is None else max(0.0, capacity - held)


def used_ratio(snapshot: Snapshot) -> float | None:
    """Share of the pool held by requests."""
    held, capacity = used(snapshot), snapshot.pool.capacity
    if held is not None and capacity:
        return held / capacity
    return snapshot.value("l1_used_ratio")


# ---------------------------------------------------------------- what the head needs


def prompt_mean(view: View) -> tuple[float, str] | None:
    """Mean prompt of those admitted in the window, else of all since the start, and where it came from."""
    prompts, first = view.increase("prompt_tokens_total"), view.histogram("ttft_seconds")
    if isinstance(prompts, Found) and isinstance(first, Histogram) and first.count > 0 and prompts.value > 0:
        return prompts.value / first.count, f"{prompts.series[0]} / {first.series}_count"
    life = view.lifetime("prompt_tokens")
    if isinstance(life, Histogram) and life.count > 0:
        return life.sum / life.count, life.series
    total, finished = view.last("prompt_tokens_total"), view.last("finished_requests_total")
    if total and finished and finished.value > 0:
        return total.value / finished.value, f"{total.series} / {finished.series}"
    return None


def head_need(view: View) -> tuple[float, str] | None:
    """Tokens a typical head of the queue needs at once, in whole blocks."""
    prompt = prompt_mean(view)
    if prompt is None:
        return None
    block = view.number("block_size") or view.number("page_size") or 1.0
    return math.ceil(prompt[0] / block) * block, prompt[1]


def output_reserve(view: View) -> float | None:
    """Output an engine that reserves would set aside for one request: at least the longest output it has produced.

    max_new_tokens is on no page; the largest non-empty bucket of the output lengths bounds it from below.
    None for an engine that reserves nothing.
    """
    if not view.number("reserves_output"):
        return None
    life = view.lifetime("generation_tokens")
    if isinstance(life, Missing):
        return CLIP_TOKENS
    longest = next((edge for edge, count in zip(life.edges, life.counts, strict=True) if count >= life.count), 0.0)
    return min(longest, CLIP_TOKENS)


def ratio_now(view: View, snapshot: Snapshot) -> float:
    """new_token_ratio at this page: the gauge is written at a prefill and frozen while admission is
    refused, so decay it.
    """
    gauge = snapshot.value("new_token_ratio")
    scale = view.number("schedule_conservativeness") or 1.0
    if gauge is None:
        return RATIO_START * scale
    steps = 0.0
    before = [s for s in view.snapshots if s.at <= snapshot.at]
    for a, b in zip(reversed(before[:-1]), reversed(before), strict=False):
        if grown_between(a, b, "prefill_passes_total") != 0 or a.value("new_token_ratio") != b.value("new_token_ratio"):
            break
        steps += grown_between(a, b, "decode_passes_total") or 0.0
    return max(gauge - RATIO_DECAY * scale * steps, min(gauge, RATIO_FLOOR * scale))


def reserved(view: View, snapshot: Snapshot, output: float) -> float:
    """Tokens set aside for the future output of the running requests, if each may still produce `output`."""
    return ratio_now(view, snapshot) * (snapshot.value("running_requests") or 0.0) * output


def fits(view: View, snapshot: Snapshot, need: float) -> bool | None:
    """Would a typical head have been admitted by KV space on this page?

    An engine that reserves output charges every admission of a pass in full and stops at the first refusal, so the pool
    has to hold the head and one more (sglang/srt/managers/schedule_policy.py); others need the prompt alone.
    """
    room, output = free(snapshot), output_reserve(view)
    if room is None:
        return None
    if output is None:
        return room >= need + (view.number("watermark") or 0.0) * (snapshot.pool.capacity or 0.0)
    return room > reserved(view, snapshot, output) + 2 * (need + output)


def longest_prompt(view: View) -> float | None:
    """Tokens that no prompt can exceed: the model's length, or what the edges of a histogram of prompts say of it."""
    told = view.number("max_model_len") or view.number("context_len")
    reach, life = view.number("prompt_buckets_reach"), view.lifetime("prompt_tokens")
    if told or not reach or isinstance(life, Missing):
        return told
    top = max((edge for edge in life.edges if math.isfinite(edge)), default=0.0)
    return reach * top or None


# ---------------------------------------------------------------- the same for a metrics server

RUNNING = Gauge("running_requests")
_THREE = "{u} / (({u} + {e} + {a}) > 0)"
_PARTS = {"u": Gauge("l1_used_tokens"), "e": Gauge("l1_evictable_tokens"), "a": Gauge("l1_available_tokens")}
USED_RATIO = First(
    Expr(_THREE, **_PARTS),
    Expr("{u} / ({c} > 0)", u=Gauge("l1_used_tokens"), c=Gauge("l1_capacity_tokens")),
    Gauge("l1_used_ratio"),
)
BLOCK = First(Label("effective_attention_block_size"), Label("block_size"), Gauge("page_size"), Number(1.0))
_BLOCK_LABEL = First(Label("effective_attention_block_size"), Label("block_size"))
CAPACITY = First(
    Over("last", Expr("{u} + {e} + {a}", **_PARTS)),
    Over("last", "l1_capacity_tokens"),
    Expr("{size} - {block}", size=Label("kv_cache_size_tokens"), block=_BLOCK_LABEL),
    Expr("{u} / ({ratio} > 0)", u=Over("last", "l1_used_tokens"), ratio=Over("last", "l1_used_ratio")),
    Expr("({blocks} / {ranks} - 1) * {block}", blocks=Label("num_gpu_blocks"), ranks=Ranks(), block=_BLOCK_LABEL),
)
"""Tokens: the three states, the engine's own number, what is used by the share that it is, or the blocks without the
null block.
"""
FREE = Unless(
    "single_pool",
    on=Expr("round((1 - {used}) * {capacity})", used=USED_RATIO, capacity=Of("l1_capacity_tokens")),
    off=First(
        Expr("{e} + {a}", e=_PARTS["e"], a=_PARTS["a"]),
        Expr("{c} - {u}", c=Gauge("l1_capacity_tokens"), u=_PARTS["u"]),
        Expr("{u} * (1 / ({ratio} > 0) - 1)", u=_PARTS["u"], ratio=Gauge("l1_used_ratio")),
    ),
)
"""Whole tokens: a ratio of blocks times their number is not quite one, and a head that just fits would not."""
PROMPT = First(
    Expr("({p} > 0) / ({c} > 0)", p=Grew("prompt_tokens_total"), c=Observed("ttft_seconds", "count")),
    Expr(
        "{s} / ({c} > 0)",
        s=Observed("prompt_tokens", "sum", ever=True),
        c=Observed("prompt_tokens", "count", ever=True),
    ),
    Expr("{p} / ({f} > 0)", p=Gauge("prompt_tokens_total"), f=Gauge("finished_requests_total")),
)
NEED = Expr("ceil({prompt} / {block}) * {block}", prompt=PROMPT, block=BLOCK)
CLIP = Number(CLIP_TOKENS)
OUTPUT = First(
    Expr(f"clamp_max({{longest}}, {CLIP_TOKENS:g})", longest=Edge("generation_tokens", 1.0, "high", ever=True)), CLIP
)
_STEPS = First(
    *(
        Expr("{d} unless ({p} > 0)", d=Recently("decode_passes_total", part), p=Recently("prefill_passes_total", part))
        for part in (1, 4)
    )
)
"""Decode passes since the last prefill: exact within a factor of four, and never too many."""
_DECAYED = Expr(
    f"(clamp_min({{g}} - {RATIO_DECAY:.6g} * {{steps}}, {RATIO_FLOOR:g}) and ({{g}} > {RATIO_FLOOR:g})) or {{g}}",
    g=Gauge("new_token_ratio"),
    steps=_STEPS,
)
RATIO_NOW = First(_DECAYED, Gauge("new_token_ratio"), Number(RATIO_START))
FITS = Unless(
    "reserves_output",
    on=Expr(
        "{free} > bool ({ratio} * {r} * {output} + 2 * ({need} + {output}))",
        free=FREE,
        ratio=RATIO_NOW,
        r=RUNNING,
        output=Of("output_reserve_tokens"),
        need=Of("head_need_tokens"),
    ),
    off=IfTold(
        "watermark",
        Expr(
            "{free} >= bool ({need} + {mark} * {c})",
            free=FREE,
            need=Of("head_need_tokens"),
            mark=Told("watermark"),
            c=Of("l1_capacity_tokens"),
        ),
        Expr("{free} >= bool {need}", free=FREE, need=Of("head_need_tokens")),
    ),
)
LONGEST = First(
    Told("max_model_len", "context_len"),
    Gauge("context_len"),
    Expr(
        "({reach} > 0) * {top}",
        reach=Trait("prompt_buckets_reach"),
        top=Edge("prompt_tokens", 1.0, "top", ever=True),
    ),
)
