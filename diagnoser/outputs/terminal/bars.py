"""Bars: the pool in its three states, the host tier, and the parts of TTFT."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from diagnoser.model import Diagnosis, L2State
from diagnoser.outputs import words
from diagnoser.outputs.base import Look
from diagnoser.outputs.terminal.page import INDENT, clipped, wrapped

CELLS, WIDE_CELLS = 16, 32
WIDE = 100
"""From this many columns on bars are long."""
LABEL = 6
FULL, MAYBE, SOFT, EMPTY = "█", "▓", "▒", "░"
"""Held; held or not (a range); can be taken back at once; free."""

TTFT_LOOKS = {
    "queue": (FULL, "magenta"),
    "l2_load": (MAYBE, "blue"),
    "prefill": (SOFT, "cyan"),
    "prefill_and_rest": (SOFT, "cyan"),
    "redo": (MAYBE, "red"),
    "rest": (EMPTY, "dim"),
}


def bars(diagnosis: Diagnosis, look: Look) -> list[Text]:
    """The lines L1, L2 and TTFT; what is not known is said in words."""
    if not diagnosis.scrapes:
        return []
    then = diagnosis.verdict.bottleneck == "unreachable"
    cells = CELLS if look.width < WIDE else WIDE_CELLS
    room = look.width - INDENT - LABEL - cells - 2
    lines = [Text("  On its last page:", "dim")] if then else []
    lines += _line("L1", _pool(diagnosis, cells), _pool_words(diagnosis, room), look)
    if look.terse < 2 or diagnosis.verdict.l2 is not L2State.ABSENT:
        lines += _line("L2", _tier(diagnosis, cells), words.tier_words(diagnosis), look)
        lines += _more_l2(diagnosis, look)
    said, now = words.ttft_words(diagnosis, bool(look.terse)), "" if look.terse else words.ttft_now(diagnosis)
    lines += _line("TTFT", _ttft(diagnosis, cells), said, look) if said else []
    return lines + (wrapped(now, look.width, Text(" " * (INDENT + LABEL))) if now else [])


def _more_l2(diagnosis: Diagnosis, look: Look) -> list[Text]:
    """Would more of it help? One line where the screen is small."""
    said = words.more_l2(diagnosis) if words.asks_for_l2(diagnosis) else ""
    head = Text(" " * INDENT).append("More L2?  ", "bold")
    return [] if not said else [clipped(said, look.width, head)] if look.terse else wrapped(said, look.width, head)


def _line(label: str, bar: Text | None, said: str, look: Look) -> list[Text]:
    head = Text(" " * INDENT).append(f"{label:<{LABEL}}", "bold")
    if bar is not None:
        head.append_text(bar).append("  ")
    return [clipped(said, look.width, head)] if look.terse > 1 and label != "L1" else wrapped(said, look.width, head)


def _pool_words(diagnosis: Diagnosis, room: int) -> str:
    """The three states; the size of the pool where there is room for it."""
    pool, used = diagnosis.l1, words.used_part(diagnosis)
    if used is None:
        return f"not known: {pool.reason or 'this page does not export the pool'}"
    name = "" if pool.name == "kv" else f"{pool.name} pool: "
    states = ", ".join(part for part in (f"{name}used {words.percents(used)}", words.rest_words(pool)) if part)
    size = f"; {words.amount(pool.capacity, 'tokens')}" if pool.capacity else "; pool size not known"
    return states + size if len(states + size) <= room else states


def _pool(diagnosis: Diagnosis, cells: int) -> Text | None:
    used = words.used_part(diagnosis)
    if used is None:
        return None
    pool = diagnosis.l1
    evictable = words.part(pool.evictable, pool.capacity) if words.split_known(pool) else None
    soft = sum(evictable) / 2 if evictable else 0.0
    return _cells([(used[0], FULL, "red"), (used[1] - used[0], MAYBE, "red"), (soft, SOFT, "yellow")], cells)


def _tier(diagnosis: Diagnosis, cells: int) -> Text | None:
    full = words.tier_part(diagnosis.l2) if diagnosis.l2 is not None else None
    return None if full is None else _cells([(full[0], FULL, "blue"), (full[1] - full[0], MAYBE, "blue")], cells)


def _ttft(diagnosis: Diagnosis, cells: int) -> Text | None:
    parts = words.ttft_parts(diagnosis)
    return _cells([(share, *TTFT_LOOKS[name]) for name, share in parts], cells) if parts else None


def _cells(parts: Sequence[tuple[float, str, str]], length: int) -> Text:
    """One bar. A part of the whole that is not zero shows at least one cell, so that little is told from nothing."""
    bar, left = Text(), length
    for share, mark, style in parts:
        cells = min(left, max(round(share * length), 1 if share > 0.002 else 0))
        bar.append(mark * cells, style)
        left -= cells
    return bar.append(EMPTY * left, "dim")
