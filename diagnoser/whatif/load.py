"""The load and what binds it, read from a diagnosis; and what becomes of it if the binding resource grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from diagnoser.model import SignalValue


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds the arithmetic takes: target of the load, the part of a pool that is used when it refuses, how
    near to rho = 1 nothing can be told, and how few requests make a prediction rough.
    """

    rho_target: float
    pool_used_most: float
    step_time_left_min: float
    edge: float
    few_requests: float

    @classmethod
    def of(cls, number: Callable[[str], float]) -> Limits:
        """Read from the rules."""
        names = ("rho_target", "pool_used_most", "step_time_left_min", "what_if_edge", "what_if_few_requests")
        return cls(*(number(name) for name in names))


@dataclass(frozen=True, slots=True)
class Load:
    """Arrivals and service in requests a second, the pool in tokens. `lost` is the part of the time that is no fast
    decoding and grows with the requests served, 0 where no queue stands; `running` is the mean, `slots` the limit.
    """

    arriving: float
    rho: float
    lost: float
    running: float
    waiting: float
    capacity: float
    held: float
    resident: float
    output: float
    reserved: float
    slots: float | None
    standing: bool

    def busier(self, arriving: float | None) -> Load:
        """The same with more arrivals."""
        more = max(1.0, (arriving or 0.0) / self.arriving)
        return replace(self, arriving=self.arriving * more, rho=self.rho * more)

    def grown(self, factor: float) -> float:
        """rho if the binding resource were `factor` times as large.

        The time of a request is a part 1 - lost that runs beside others, and a part lost that does not: more requests
        at once speed up only the first (Amdahl).
        """
        return self.rho * ((1.0 - self.lost) / factor + self.lost)

    def required(self, limits: Limits) -> tuple[float, float | None]:
        """Tokens of the pool for the target load, if the pool is what binds: if steps take no longer however many run,
        and if all of `lost` grows with the requests served (None: then no pool alone would do).
        """
        low, left = self.capacity * self.rho / limits.rho_target, 1.0 - self.rho * self.lost
        return low, low * (1.0 - self.lost) / left if left >= limits.step_time_left_min else None

    def queue_growth(self, rho: float) -> float:
        """Requests a second by which the queue grows (negative: drains) at this rho."""
        return self.arriving * (1.0 - 1.0 / rho) if rho > 0 else 0.0


def load_of(signals: Mapping[str, SignalValue]) -> Load | str:
    """The load, or the reason why it is not known."""
    needed = ("arrival_rate", "rho", "running_mean_requests", "waiting_last_requests", "l1_capacity_tokens",
              "l1_used_ratio_mean", "resident_tokens_per_request")  # fmt: skip
    for name in needed:
        found = signals.get(name)
        if found is None or found.value is None:
            return found.missing_reason if found is not None else f"no {name}"
    value = {name: one.value for name, one in signals.items() if one.value is not None}
    if value["rho"] <= 0:
        return "nobody arrived in the window"
    standing = value.get("queue_standing") == 1
    return Load(
        arriving=value["arrival_rate"],
        rho=value["rho"],
        lost=min(1.0, max(0.0, value.get("step_stretch_ratio", 0.0))) if standing else 0.0,
        running=value["running_mean_requests"],
        waiting=value["waiting_last_requests"],
        capacity=value["l1_capacity_tokens"],
        held=value["l1_used_ratio_mean"] * value["l1_capacity_tokens"],
        resident=value["resident_tokens_per_request"],
        output=value.get("output_mean_tokens", 0.0),
        reserved=value.get("l1_reserved_low_tokens", 0.0),
        slots=value.get("slots_limit_requests"),
        standing=standing,
    )
