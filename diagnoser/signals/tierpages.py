"""What the pages of a window say of the host tier: its states in time order, and how its counters grew.

Shared by the signal modules; defines no signal itself.
"""

from __future__ import annotations

import itertools

from diagnoser.model import TierState
from diagnoser.signals.view import Found, Missing, Result, View, grown


def tier_states(view: View) -> list[tuple[float, TierState]]:
    """(unix seconds, tier) of every page of the tier in the window; none if the last page does not tell."""
    seen = [(s.l2.at or s.at, s.l2) for s in view.snapshots if s.l2 is not None]
    if not seen or not seen[-1][1].presence:
        return []
    backend = seen[-1][1].backend
    return sorted({at: tier for at, tier in seen if tier.presence and tier.backend == backend}.items())


def no_tier(view: View) -> Missing:
    """Why nothing is known of a tier."""
    last = view.snapshots[-1].l2 if view.snapshots else None
    return Missing(last.reason if last is not None and last.reason else "no page says whether there is a host tier")


def since_start(view: View, counter: str) -> Result:
    """A counter since the process started."""
    states = tier_states(view)
    reading = states[-1][1].counters.get(counter) if states else None
    if reading is None:
        return Missing(f"this tier does not export {counter}") if states else no_tier(view)
    return Found(reading.value, (reading.series,))


def tier_grew(view: View, counter: str) -> Result:
    """Growth over the window, page by page, so that a reset in between loses only what lay before it."""
    states = tier_states(view)
    if not states:
        return no_tier(view)
    after = states[-1][1].counters.get(counter)
    if after is None:
        return Missing(f"this tier does not export {counter}")
    if len(states) < 2:
        return Missing("needs two pages")
    values = [r.value if (r := tier.counters.get(counter)) is not None else 0.0 for _, tier in states]
    return Found(sum(grown(a, b) for a, b in itertools.pairwise(values)), (after.series,))


def tier_rate(view: View, counter: str) -> Result:
    """Growth a second, by the times of the tier's own pages."""
    grew = tier_grew(view, counter)
    if isinstance(grew, Missing):
        return grew
    states = tier_states(view)
    return Found(grew.value / (states[-1][0] - states[0][0]), grew.series)


def tier_ratio(view: View, over: str, under: str, nothing: str) -> Result:
    """Growth of one counter by that of another; where the other stood still there is no ratio (0/0 is not 0)."""
    top, bottom = tier_grew(view, over), tier_grew(view, under)
    if isinstance(top, Missing):
        return top
    if isinstance(bottom, Missing):
        return bottom
    if bottom.value <= 0:
        return Missing(nothing)
    return Found(top.value / bottom.value, top.series + bottom.series)
