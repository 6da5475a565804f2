"""The fleet as a stream: engines that show the same values together, so that one take at a time is held in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from .members import Member, Settings, members
from .takes import Take, take

MODEL = "model_name"
"""The label that the fleet's models replace; the engine's other labels stay."""


@dataclass(frozen=True, eq=False)
class Shot:
    """One take and the engines that replay it."""

    take: Take
    members: Sequence[Member]

    @property
    def series(self) -> int:
        """How many series its engines have together, with `up`."""
        return (len(self.take.values) + 1) * len(self.members)

    @property
    def samples(self) -> int:
        """How many samples those have."""
        scrapes = len(self.take.offsets)
        return (int((~np.isnan(self.take.values)).sum()) + scrapes) * len(self.members)


def shots(settings: Settings) -> Iterator[Shot]:
    """The whole fleet. Only the list of its engines is held, never their samples."""
    start = settings.end - settings.scrapes * settings.interval
    fleet = sorted(members(settings), key=lambda member: member.variant)
    for _, group in groupby(fleet, key=lambda member: member.variant):
        same = list(group)
        shown = take(same[0].footage, same[0].phase, settings.scrapes, settings.interval, start)
        yield Shot(shown, same)
