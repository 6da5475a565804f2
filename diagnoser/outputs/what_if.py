"""What the command `what-if` prints: the load, then one change after the other. Not a format of its own."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

from diagnoser.model import Diagnosis, WhatIf
from diagnoser.outputs import words
from diagnoser.outputs.contract import SCHEMA_VERSION, as_data

SHOWN = ("schema_version", "at", "window_seconds", "scrapes", "engine", "verdict", "what_if")
LOAD = (
    "arrival_rate", "admission_rate", "service_rate", "rho", "waiting_last_requests", "predicted_wait_seconds",
    "token_seconds_per_request", "resident_tokens_per_request", "running_mean_requests", "l1_capacity_tokens",
    "step_stretch_ratio", "time_to_exhaustion_seconds",
)  # fmt: skip


def as_json(diagnoses: Sequence[Diagnosis], notes: Sequence[str]) -> str:
    """One document: for each engine rank its verdict, the load in signals, and the changes."""
    found = []
    for data in map(as_data, diagnoses):
        load = {name: data["signals"][name] for name in LOAD if name in data["signals"]}
        found.append({**{name: data[name] for name in SHOWN}, "load": load})
    document = {"schema_version": SCHEMA_VERSION, "notes": list(notes), "diagnoses": found}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_text(diagnoses: Sequence[Diagnosis], notes: Sequence[str], width: int) -> str:
    """One block an engine rank."""
    blocks = ["\n".join(_block(one, width)) for one in diagnoses]
    return "\n\n".join([*blocks, *(f"  Note  {words.clean(note)}" for note in notes)]) + "\n"


def _block(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    yield from (words.who(diagnosis, True), f"  {words.span(diagnosis)}", "")
    yield f"  {words.clean(diagnosis.verdict.headline)}"
    yield from _wrapped(_load(diagnosis), width, "  ")
    for one in diagnosis.what_if:
        yield from ("", *_wrapped(f"{one.change}: {effect(one)}", width, "  "))
        beside = "; ".join(part for part in (one.assumption, one.error) if part)
        yield from _wrapped(f"assumes: {beside}", width, "      ") if beside and one.helps else ()
    if not diagnosis.what_if:
        yield "  Nothing of the pool, the slots or prefill is closed here: no change of them can be predicted."


def effect(one: WhatIf) -> str:
    """What the change brings, in one sentence."""
    if one.helps is None:
        return f"cannot be said ({one.reason})"
    if not one.helps and one.reason:
        return one.reason if one.reason.startswith("no change") else f"no change ({one.reason})"
    low, high = one.pool_low_tokens, one.pool_high_tokens
    between = f" ({low:,.0f} to {high:,.0f})" if low is not None and high is not None else ""
    runs = "" if one.concurrency is None else f", {one.concurrency:.0f} at once"
    rho = "" if one.rho is None or one.pool_tokens is not None else f", rho {one.rho:.2f}"
    return f"{one.queue}{between}{runs}{rho}"


def _load(diagnosis: Diagnosis) -> str:
    found = {name: s.value for name, s in diagnosis.signals.items() if s.value is not None}
    parts = (
        ("arrival_rate", "{:.2f} requests arrive a second"),
        ("service_rate_max", "{:.2f} could be served"),
        ("rho", "rho {:.2f}"),
        ("token_seconds_per_request", "{:,.0f} token-seconds each"),
        ("waiting_last_requests", "{:.0f} wait"),
        ("predicted_wait_seconds", "a new one about {:.0f} s"),
        ("l1_capacity_tokens", "pool {:,.0f} tokens"),
    )
    return ", ".join(text.format(found[name]) for name, text in parts if name in found) + "."


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(words.clean(text), width, initial_indent=indent, subsequent_indent=f"{indent}  ")
