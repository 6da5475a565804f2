"""What was fetched: an address, and the page it gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Target:
    """One address or recording that yields pages. `name` is what the user called it and what every message shows."""

    name: str
    url: str = ""


class Sample(NamedTuple):
    """One line of an exposition page. `labels` may be shared between scrapes: never change it."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Scrape:
    """One fetch of one page, never two: all samples are of the same instant.

    `at` is unix seconds. A failed fetch has `error` (one sentence for the user) and no samples.
    `series_total` counts every series on the page, also those nobody asked for; `bad_lines` those that no parser
    could read.
    """

    target: Target
    at: float
    samples: tuple[Sample, ...] = ()
    error: str | None = None
    series_total: int = 0
    bad_lines: int = 0
