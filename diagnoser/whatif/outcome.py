"""What one change leads to: concurrency, rho and the queue, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass

from diagnoser.model import WhatIf
from diagnoser.whatif.load import Limits, Load

ROUGH = "rough: so few run that whole requests count"


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what it enlarges, by what factor, and what that takes for granted.

    `capped` asks whether KV space allows as many requests as the enlarged slots.
    """

    id: str
    text: str
    enlarges: str
    factor: float
    assumption: str
    capped: bool = False


def outcome(change: Change, load: Load, limits: Limits, capped: bool) -> WhatIf:
    """The prediction for a change of what binds."""
    if change.enlarges == "engine":
        return _replica(change, load, limits)
    factor, cap = _factor(change, load, limits, capped)
    rho = load.grown(factor)
    error = "rho to 10 %, if decoding itself gets no slower" if load.standing else "5 to 10 % optimistic"
    error = ROUGH if load.running < limits.few_requests else error
    growth, helps = load.queue_growth(rho), factor > 1.0
    return WhatIf(
        id=change.id,
        change=change.text,
        helps=helps,
        reason="" if helps else cap.strip("; "),
        concurrency=load.running * factor,
        rho=rho,
        queue_growth=growth,
        queue=words(load, rho, growth, limits.edge),
        assumption=f"{change.assumption}{cap}",
        error=error,
    )


def _replica(change: Change, load: Load, limits: Limits) -> WhatIf:
    rho = load.rho / change.factor
    growth = load.queue_growth(rho) / change.factor
    return WhatIf(
        change.id, change.text, True, "", load.running * change.factor, rho, growth,
        words(load, rho, growth, limits.edge), change.assumption, "rho to 10 %; routing splits prefixes",
    )  # fmt: skip


def _factor(change: Change, load: Load, limits: Limits, capped: bool) -> tuple[float, str]:
    """The factor, cut where the other limit would bind first, and a word about that."""
    if change.capped and load.resident > 0:
        room = limits.pool_used_most * load.capacity / load.resident / max(1.0, load.running)
        if room < change.factor:
            return max(1.0, room), f"; KV space holds {room:.1f} times as many"
    if capped and load.slots and load.running * change.factor > load.slots:
        return max(1.0, load.slots / load.running), f"; then {load.slots:.0f} slots are the limit"
    return change.factor, ""


def words(load: Load, rho: float, growth: float, edge: float) -> str:
    """The queue in words."""
    if rho > 1 + edge:
        return f"grows by {growth:.2g} a second"
    if rho > 1 - edge:
        return "on the edge: may stand, may grow"
    if load.waiting >= 1:
        return f"drains in {load.waiting / -growth:.0f} s" if growth < 0 else "stands"
    return "no lasting queue"


def nothing(change: Change, reason: str, load: Load) -> WhatIf:
    """A change of what does not bind."""
    return WhatIf(
        change.id, change.text, False, reason, load.running, load.rho, load.queue_growth(load.rho), "no change",
        change.assumption,
    )  # fmt: skip


def unsaid(change: Change, reason: str) -> WhatIf:
    """A change whose effect cannot be said."""
    return WhatIf(change.id, change.text, None, reason, assumption=change.assumption)
