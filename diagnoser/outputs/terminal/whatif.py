"""The short block of what changes would bring: the pool, the most telling changes, and L2."""

from __future__ import annotations

from rich.text import Text

from diagnoser.model import Diagnosis, WhatIf
from diagnoser.outputs.base import Look
from diagnoser.outputs.terminal.page import clipped
from diagnoser.outputs.what_if import effect

FIRST = ("required_pool", "more_slots", "fp8_kv", "replica")
"""Shown in this order, as far as they help; the command what-if has all of them."""
LINES = 3


def whatif(diagnosis: Diagnosis, look: Look) -> list[Text]:
    """At most five lines, one where the look is terse, none where it is terser."""
    found = {one.id: one for one in diagnosis.what_if}
    shown = [found[name] for name in FIRST if name in found and found[name].helps][:LINES]
    if not shown or look.terse > 1:
        return []
    last = [found["twice_l2"]] if "twice_l2" in found else []
    title = Text("  What if", "bold").append("  (`diagnose what-if` has all of it)", "dim")
    return [title] * (not look.terse) + [_line(one, look) for one in (shown[:1] if look.terse else [*shown, *last])]


def _line(one: WhatIf, look: Look) -> Text:
    said = "no change in admission" if one.id == "twice_l2" and one.helps is False else effect(one)
    return clipped(said, look.width, Text("  ").append(f"{one.change}: ", "bold"))
