"""What arrives and what the engine gets done, both in requests a second. Shared by the forecast; defines no signal
itself.

Little's law in tokens ties the two to the pool: tokens held = requests finished a second x token-seconds a request.
"""

from __future__ import annotations

from dataclasses import dataclass

from diagnoser.model import Histogram, Snapshot
from diagnoser.signals.base import Params, scalar
from diagnoser.signals.requests import queue, queued
from diagnoser.signals.room import fits, head_need, used
from diagnoser.signals.view import Found, Missing, Result, View, grown, mean

NO_WAITING = "the pages do not tell how many wait"


# ---------------------------------------------------------------- arrivals


def admissions(view: View) -> Result:
    """Requests a second that left the queue for the batch.

    First tokens, or first schedulings where the engine observes its queue time then (that one is told a rank).
    """
    at_admission = bool(view.number("queue_time_at_admission"))
    own = view.histogram("queue_seconds") if at_admission else Missing("")
    if isinstance(own, Missing) and at_admission and (view.number("dp_size") or 1) > 1:
        return Missing("first tokens are counted for all ranks together, and queue times are not on the page")
    counted = own if isinstance(own, Histogram) else view.histogram("ttft_seconds")
    if isinstance(counted, Missing):
        return counted
    return Found(counted.count / view.seconds, (f"{counted.series}_count",))


def arrivals(view: View) -> Result:
    """Requests a second that arrive: admitted, growth of the queue, and those shed in front of it.

    Requests whose clients gave up while waiting are on no page; they make it too low.
    """
    admitted, waiting = admissions(view), queue(view)
    if isinstance(admitted, Missing):
        return admitted
    if len(waiting) < 2:
        return Missing(NO_WAITING)
    shed = view.increase("rejected_requests_total")
    came = (waiting[-1] - waiting[0] + (shed.value if isinstance(shed, Found) else 0.0)) / view.seconds
    if admitted.value + came < 0:
        return Missing("the queue shrank by more than were admitted: requests left it unserved")
    return Found(admitted.value + came, admitted.series)


# ---------------------------------------------------------------- what gets done


def output_length(view: View, params: Params) -> Result:
    """Mean output of those who finished in the window, tokens."""
    least, seen = scalar(params, "finished_min"), view.histogram("generation_tokens")
    if isinstance(seen, Histogram) and seen.count >= least:
        return Found(seen.sum / seen.count, (seen.series,))
    tokens, finished = view.increase("generation_tokens_total"), view.increase("finished_requests_total")
    if isinstance(tokens, Found) and isinstance(finished, Found) and finished.value >= least and tokens.value > 0:
        return Found(tokens.value / finished.value, (*tokens.series, *finished.series))
    return Missing(f"fewer than {least:g} requests finished in the window: sample longer")


def completions(view: View, params: Params) -> Result:
    """Requests a second the engine gets done: tokens generated a second over the tokens of an output.

    Counts the work in progress too, so it is steadier than the count of those that happened to finish.
    """
    length = output_length(view, params)
    if isinstance(length, Missing):
        return length
    every_pass, tokens = view.rate("decode_tokens_total"), view.rate("generation_tokens_total")
    if isinstance(every_pass, Found) and isinstance(tokens, Found) and every_pass.series != tokens.series:
        # the first token of a request comes out of its prefill
        return Found(every_pass.value / max(1.0, length.value - 1.0), (*every_pass.series, *length.series))
    if view.number("queue_time_at_admission") and (view.number("dp_size") or 1) > 1:
        return Missing("generated tokens are counted for all ranks together")
    if isinstance(tokens, Missing):
        return tokens
    return Found(tokens.value / length.value, (*tokens.series, *length.series))


# ---------------------------------------------------------------- how fast the steps are


def _steps(a: Snapshot, b: Snapshot) -> float | None:
    before, after = (s.histograms.get("iteration_tokens") for s in (a, b))
    if before is not None and after is not None:
        return grown(before.count, after.count)
    first, last = a.value("decode_passes_total"), b.value("decode_passes_total")
    return None if first is None or last is None else grown(first, last)


def stretch(view: View, params: Params) -> Result:
    """Share of the engine's time that goes to something else than decoding at its fastest: prefill, recomputing,
    stalls. 0..1.

    What the mean step takes beyond those of the fastest quarter, over stretches of several steps while requests run.
    Time between two pages without any step is a stall of the machine: it does not grow with the requests served.
    """
    found, seconds, steps, busy = [], 0.0, 0.0, 0.0
    for a, b in view.pairs():
        grew = _steps(a, b)
        if grew is None or not (a.value("running_requests") and b.value("running_requests")):
            seconds = steps = 0.0
            continue
        busy += b.at - a.at
        if grew == 0:
            continue
        seconds, steps = seconds + b.at - a.at, steps + grew
        if steps >= scalar(params, "stretch_steps_min"):
            found.append((seconds / steps, steps))
            seconds = steps = 0.0
    if len(found) < scalar(params, "stretch_parts_min"):
        return Missing("too few steps counted in the window")
    fast, slow = _fastest(sorted(found), scalar(params, "fast_steps_ratio")), _mean_step(found)
    return Found((slow - fast) * sum(n for _, n in found) / busy)


def _mean_step(parts: list[tuple[float, float]]) -> float:
    return sum(step * n for step, n in parts) / sum(n for _, n in parts)


def _fastest(parts: list[tuple[float, float]], ratio: float) -> float:
    enough, kept = ratio * sum(n for _, n in parts), 0
    while sum(n for _, n in parts[:kept]) < enough:
        kept += 1
    return _mean_step(parts[: max(1, kept)])


# ---------------------------------------------------------------- the load


@dataclass(frozen=True, slots=True)
class Load:
    """The load of one window. `standing`: somebody waited on nearly every page, so what gets done is all that can be.
    `refused`: and a typical head mostly found no KV space.
    """

    arriving: float
    served: float
    held: float
    capacity: float
    standing: bool
    refused: bool
    series: tuple[str, ...]

    @property
    def cost(self) -> float:
        """Token-seconds a request holds."""
        return self.held / self.served


def standing(view: View, params: Params) -> bool:
    """Somebody waited on nearly every page."""
    pages = [many > 0 for many in queue(view)]
    return bool(pages) and sum(pages) / len(pages) >= scalar(params, "queue_standing_most")


def load(view: View, params: Params) -> Load | Missing:
    """Everything the forecast of demand needs, or the first thing that is missing."""
    if "load" not in view.memo:
        view.memo["load"] = _load(view, params)
    found: Load | Missing = view.memo["load"]
    return found


def _load(view: View, params: Params) -> Load | Missing:
    arriving, served = arrivals(view), completions(view, params)
    if isinstance(arriving, Missing):
        return arriving
    if isinstance(served, Missing):
        return served
    held = [u for s in view.snapshots if (u := used(s)) is not None]
    capacity = view.snapshots[-1].pool.capacity
    if not held or not capacity:
        return view.why_missing("l1_used_ratio" if capacity else "l1_capacity_tokens")
    if served.value <= 0:
        return Missing("nothing was generated in the window")
    stands = standing(view, params)
    series = tuple(dict.fromkeys((*arriving.series, *served.series)))
    refused = stands and _refused(view)
    return Load(arriving.value, served.value, mean(held), capacity, stands, refused, series)


def _refused(view: View) -> bool:
    need = head_need(view)
    answers = [] if need is None else [a for s in queued(view) if (a := fits(view, s, need[0])) is not None]
    return not answers or sum(answers) / len(answers) < 0.5
