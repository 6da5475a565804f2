"""Lengths of requests: what one holds on average, at its end, and at admission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diagnoser.errors import CapacityError


@dataclass(frozen=True, slots=True)
class Request:
    """One kind of request. `prompt` and `output` in tokens, `weight` its share among the *running* requests.

    From shares of arrivals multiply by the time each kind runs (roughly its output).
    """

    prompt: int
    output: int = 0
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.prompt < 0 or self.output < 0 or self.prompt + self.output < 1:
            raise CapacityError(f"a request of {self.prompt} prompt and {self.output} output tokens holds nothing")
        if not self.weight > 0:
            raise CapacityError(f"the weight {self.weight} of a request must be above 0")

    @property
    def peak(self) -> int:
        """Tokens at its last step."""
        return self.prompt + self.output

    @property
    def mean(self) -> int:
        """Tokens on average while it decodes at an even pace: prompt + output / 2, rounded up."""
        return self.prompt + -(-self.output // 2)

    def at(self, moment: str) -> int:
        """Tokens at "peak", "mean" or "admission" (the prompt)."""
        return {"peak": self.peak, "mean": self.mean, "admission": max(1, self.prompt)}[moment]


@dataclass(frozen=True, slots=True)
class Workload:
    """A mix of requests. Never empty; weights need not sum to 1."""

    requests: tuple[Request, ...]

    def __post_init__(self) -> None:
        if not self.requests:
            raise CapacityError("a workload needs at least one kind of request")

    def average(self, values: Sequence[float]) -> float:
        """The mean of one value for each kind of request, by weight."""
        total = sum(request.weight for request in self.requests)
        return sum(v * request.weight for v, request in zip(values, self.requests, strict=True)) / total

    def lengths(self, moment: str) -> tuple[int, ...]:
        """Tokens of each kind of request at this moment."""
        return tuple(request.at(moment) for request in self.requests)

    def mean_length(self, moment: str) -> float:
        """Tokens of an average request at this moment."""
        return self.average(self.lengths(moment))


def workload(*requests: Request) -> Workload:
    """A workload of these requests."""
    return Workload(requests)
