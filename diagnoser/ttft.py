"""TTFT by cause, put together from its signals, with the words that keep the numbers honest."""

from __future__ import annotations

from collections.abc import Mapping

from diagnoser.model import Answer, CheckResult, SignalValue, Ttft, TtftPart
from diagnoser.units import count, seconds

Row = Mapping[str, SignalValue]
SURVIVORS = "Only requests that got a first token count: whoever gave up or still waits is in no histogram."
LAG_SECONDS = 1.0
"""From this age on it is said when the parts were observed."""


def by_cause(row: Row, checks: tuple[CheckResult, ...]) -> Ttft:
    """Whole, parts, estimates for those who still wait, and sentences."""
    answers = {check.id: check for check in checks}
    return Ttft(
        mean_seconds=_value(row, "ttft_mean_seconds"),
        p50=_bucket(row, "p50"),
        p99=_bucket(row, "p99"),
        parts=_parts(row),
        basis=_basis(row),
        silent_seconds=_value(row, "ttft_silent_seconds"),
        wait_estimate_seconds=_value(row, "ttft_wait_estimate_seconds"),
        queue_age_estimate_seconds=_value(row, "ttft_queue_age_estimate_seconds"),
        sentences=tuple(_sentences(row, answers)),
    )


def _value(row: Row, name: str) -> float | None:
    return row[name].value if name in row else None


def _bucket(row: Row, which: str) -> tuple[float, float] | None:
    low, high = _value(row, f"ttft_{which}_low_seconds"), _value(row, f"ttft_{which}_high_seconds")
    return None if low is None or high is None else (low, high)


def _parts(row: Row) -> tuple[TtftPart, ...]:
    """Queue without the load from L2, that load, prefill without redoing, redoing, rest."""
    whole, load = _value(row, "ttft_of_parts_seconds"), _value(row, "ttft_load_share_ratio") or 0.0
    queue, prefill, rest = (_value(row, f"{name}_share_ratio") for name in ("queue", "prefill", "rest"))
    parts = [_part(row, "queue", "queue_share_ratio", None if queue is None else queue - load, whole)]
    parts.append(_estimate(row, "l2_load", "ttft_load_seconds", whole))
    if prefill is None and queue is not None:
        parts.append(_part(row, "prefill_and_rest", "queue_share_ratio", 1.0 - queue, whole))
        return (*parts, _estimate(row, "redo", "ttft_redo_seconds", whole))
    parts.append(_part(row, "prefill", "prefill_share_ratio", prefill, whole))
    parts.append(_estimate(row, "redo", "ttft_redo_seconds", whole))
    return (*parts, _part(row, "rest", "rest_share_ratio", rest, whole))


def _part(row: Row, name: str, signal: str, share: float | None, whole: float | None) -> TtftPart:
    seen = row.get(signal)
    if share is None or seen is None or whole is None:
        return TtftPart(name, "unknown", reason=seen.missing_reason if seen else f"no signal {signal}")
    return TtftPart(name, "measured", share * whole, share, series=seen.series)


def _estimate(row: Row, name: str, signal: str, whole: float | None) -> TtftPart:
    seen = row.get(signal)
    if seen is None or seen.value is None:
        return TtftPart(name, "unknown", reason=seen.missing_reason if seen else f"no signal {signal}")
    if not seen.value:
        return TtftPart(name, "measured", 0.0, 0.0, series=seen.series)
    share = min(1.0, seen.value / whole) if whole else None
    return TtftPart(name, "estimate", seen.value, share, series=seen.series)


def _basis(row: Row) -> str:
    whole, requests, age = (
        _value(row, f"ttft_{n}") for n in ("of_parts_seconds", "parts_requests", "parts_age_seconds")
    )
    if whole is None or requests is None or not requests:
        return ""
    if age is not None and age >= LAG_SECONDS:
        return f"means of the {count(requests)} that finished, first token about {seconds(age)} earlier"
    return f"means of {count(requests)} first tokens"


def _sentences(row: Row, answers: Mapping[str, CheckResult]) -> list[str]:
    out = []
    waits, wait, age = (
        _value(row, n)
        for n in ("waiting_last_requests", "ttft_wait_estimate_seconds", "ttft_queue_age_estimate_seconds")
    )
    if waits and wait is not None and wait >= LAG_SECONDS:
        now = f"whoever arrives now waits about {seconds(wait)}"
        head = f"{now}, and the head of the queue has waited about {seconds(age)}" if age else now
        out.append(f"Estimate: {head}.")
    for name in ("no_first_token", "tail_is_queue"):
        check = answers.get(name)
        if check is not None and check.answer is Answer.YES:
            out.append(f"{check.reason[:1].upper()}{check.reason[1:]}.")
    unknown = next((part for part in _parts(row) if part.kind == "unknown" and part.name in ("queue", "prefill")), None)
    if unknown is not None and _value(row, "ttft_mean_seconds") is not None:
        out.append(f"The parts are not known: {unknown.reason}.")
    aborted = _value(row, "aborted_requests")
    if aborted:
        out.append(f"{SURVIVORS} {count(aborted)} were aborted in the window.")
    elif waits:
        out.append(SURVIVORS)
    return out
