"""Who runs and who waits on one page. Shared by the signal modules; defines no signal itself."""

from __future__ import annotations

from diagnoser.model import Snapshot
from diagnoser.signals.promql import AnySum, Expr, First, Gauge, Sum, Total, Unless
from diagnoser.signals.view import View

OUTSIDE = (
    "grammar_queue_requests",
    "pd_bootstrap_queue_requests",
    "pd_inflight_queue_requests",
    "pd_transfer_queue_requests",
)
"""Queues beside the waiting queue that hold requests for a reason outside the KV pool."""

RUNNING = Gauge("running_requests")
_QUEUE = Total("waiting_requests", "pd_prealloc_queue_requests", *OUTSIDE)
_NOTHING_YET = Expr("{size} * 0 unless {seen}", size=Gauge("l1_capacity_tokens"), seen=RUNNING)
WAITING = Unless("born_late", on=First(_QUEUE, _NOTHING_YET), off=_QUEUE)
"""`waiting` below for a metrics server: 0 too where a family's gauges are born with the first request and none is."""
WAITED = Total("waiting_requests", "pd_prealloc_queue_requests", *OUTSIDE, earlier=True)
"""The same on the page before."""
DEFERRED = AnySum(Gauge("waiting_deferred_requests"), Total(*OUTSIDE))
BUSY = Sum(RUNNING, WAITING)


def outside(snapshot: Snapshot) -> float:
    """Requests parked in queues of their own, beside the waiting queue."""
    readings = snapshot.readings
    return sum((readings[name].value for name in OUTSIDE if name in readings), 0.0)


def waiting(snapshot: Snapshot) -> float | None:
    """Requests that wait for admission or for something outside; the P/D pre-allocation queue waits for KV space."""
    queue = snapshot.value("waiting_requests")
    if queue is None:
        return 0.0 if snapshot.value("cold_engine") == 1 else None
    return queue + (snapshot.value("pd_prealloc_queue_requests") or 0.0) + outside(snapshot)


def deferred(snapshot: Snapshot) -> float:
    """Waiting requests that are parked on something outside the KV pool."""
    return (snapshot.value("waiting_deferred_requests") or 0.0) + outside(snapshot)


def busy(snapshot: Snapshot) -> bool:
    """Somebody runs or waits."""
    return (snapshot.value("running_requests") or 0.0) + (waiting(snapshot) or 0.0) > 0


def waits(view: View) -> list[float | None]:
    """`waiting` of every page of the window. Asked by many signals, so counted once."""
    if "waits" not in view.memo:
        view.memo["waits"] = [waiting(s) for s in view.snapshots]
    found: list[float | None] = view.memo["waits"]
    return found


def queue(view: View) -> list[float]:
    """The same of the pages that tell it."""
    return [one for one in waits(view) if one is not None]


def queued(view: View) -> list[Snapshot]:
    """The pages on which somebody waits."""
    if "queued" not in view.memo:
        pages = [s for s, many in zip(view.snapshots, waits(view), strict=True) if (many or 0.0) > 0]
        view.memo["queued"] = [s for s in pages if s.value("running_requests") is not None]
    found: list[Snapshot] = view.memo["queued"]
    return found
