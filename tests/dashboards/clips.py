"""Parts of recordings, as engines that a Prometheus can scrape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from diagnoser.sources.recording import open_recording

DATA = Path(__file__).parents[1] / "data"
RECORDINGS = (
    "recordings/vllm-0.32.0--c-l1-preempt", "recordings/vllm-0.32.0--l-l2-idle-l1-bound",
    "recordings/vllm-0.32.0--m-dp2", "dialects/vllm-0.19.0", "dialects/l2-vllm-offload-0.32.0-idle",
    "recordings/sglang-0.5.23--d-reservation", "recordings/sglang-0.5.23--c-l1-retract",
    "recordings/sglang-0.5.23--j1-hicache-l1-bound-l2-idle", "recordings/sglang-0.5.23--l-dp2",
    "dialects/sglang-0.5.23-j2-hicache-l2-full", "dialects/sglang-0.5.6",
)  # fmt: skip
"""Both families bound and not, two ranks, L2 with and without traffic, and pages from before a metric was added."""


@dataclass(frozen=True)
class Page:
    """One poll."""

    at: float
    text: str
    error: None = None


@dataclass(frozen=True)
class Clip:
    """The later half of a recording: what an incident looks like from its first minute on."""

    name: str
    texts: tuple[str, ...]

    def pages(self) -> Iterator[Page]:
        """As MockEngine wants them."""
        return (Page(float(place), text) for place, text in enumerate(self.texts))

    @property
    def metrics(self) -> frozenset[str]:
        """Names on the pages."""
        lines = (line for text in self.texts for line in text.splitlines() if line and line[0] != "#")
        return frozenset(line.partition("{")[0].partition(" ")[0] for line in lines)


def clip(path: str) -> Clip:
    """Of that recording."""
    (target,) = open_recording(DATA / f"{path}.tar.xz").targets
    texts = tuple(page.text for page in target.pages() if page.text is not None)
    few = tuple(text for text in texts for _ in range(5))
    return Clip(path.rpartition("/")[2], few if len(texts) < 5 else texts[len(texts) // 2 :])
