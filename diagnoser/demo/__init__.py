"""What `diagnose demo` plays: a recording of a real SGLang engine with a pool of 8,192 tokens and HiCache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from diagnoser.sources.recording import RecordedPage, RecordedTarget, open_recording

RECORDING = Path(__file__).with_name("incident.tar.xz")
BOUND_FROM_SECONDS = 20.0
"""Where the engine's KV space has become the closed gate; before that the load only builds up."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A recorded target from some seconds after its first page on."""

    recorded: RecordedTarget
    start_seconds: float

    @property
    def name(self) -> str:
        """Name of the recording."""
        return self.recorded.name

    def pages(self) -> Iterator[RecordedPage]:
        """Its pages from there on."""
        begin = self.recorded.times[0] + self.start_seconds
        return (page for page in self.recorded.pages() if page.at >= begin)


def incident() -> Excerpt:
    """The bundled recording, from the moment it becomes interesting."""
    return Excerpt(open_recording(RECORDING).targets[0], BOUND_FROM_SECONDS)
