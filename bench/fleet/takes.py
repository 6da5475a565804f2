"""Footage as one engine's scrapes: where it starts, how far its scrapes are apart, when each of them happened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .footage import Footage

_JITTER_MS = 12


@dataclass(frozen=True, eq=False)
class Take:
    """Some scrapes of a footage: seconds after the first one, and series x scrapes values (NaN: not on that page)."""

    footage: Footage
    offsets: np.ndarray
    values: np.ndarray


def take(footage: Footage, phase: float, scrapes: int, interval: float, start: float) -> Take:
    """`scrapes` pages, about `interval` seconds apart, from `phase` seconds into the footage; the first is at `start`.

    Every page keeps its distance to the engine's own clock, so rates are right: stamps follow the page, not the page
    the stamp. Scrapes are therefore as uneven as the recording's pages are coarse, half a second at most.
    """
    ideal = phase + np.arange(scrapes) * interval
    laps, within = np.divmod(ideal, footage.lap)
    pages = np.abs(footage.times[None, :-1] - within[:, None]).argmin(axis=1)
    at = laps * footage.lap + footage.times[pages]
    values = _gone_round(footage, pages, laps)
    values[:, footage.dated] += start - ideal[0] - footage.began
    return Take(footage, at - at[0], np.ascontiguousarray(values.T))


def _gone_round(footage: Footage, pages: np.ndarray, laps: np.ndarray) -> np.ndarray:
    """Scrapes x series. What counts up has gained a whole recording a lap, also where a page does not show it yet."""
    values: np.ndarray = footage.values[pages]
    gain = np.nan_to_num(footage.values[-1]) - np.nan_to_num(footage.values[0])
    counting = footage.counting & ~np.isnan(footage.values[-1])
    unseen = np.isnan(values) & counting & (laps[:, None] > 0)
    values[unseen] = 0.0
    values += np.where(counting, gain * laps[:, None], 0.0)
    return values


def phases(footage: Footage, at_most: int) -> list[float]:
    """Where engines start in it. Few enough that every start's text is made only once."""
    count = min(at_most, len(footage.times) - 1)
    return [float(footage.times[i * (len(footage.times) - 1) // count]) for i in range(count)]


def stamps(shot: Take, start: float) -> np.ndarray:
    """When an engine's scrapes happened, in unix milliseconds: its own start, and some milliseconds of jitter each."""
    jitter = np.random.default_rng(round(start * 1000)).integers(0, _JITTER_MS, len(shot.offsets))
    times: np.ndarray = ((start + shot.offsets) * 1000).astype(np.int64) + jitter
    return times
