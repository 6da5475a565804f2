"""Raw samples of one target back into the pages they were stored from.

A scrape stamps all of its samples alike, `up` included. `up` = 0 is a failed scrape: what else carries its stamp are
staleness markers. A series that a page lacked has no sample there; nothing is carried over from an earlier page.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from diagnoser.model import Sample, Scrape, Target
from diagnoser.sources.prometheus.api import Series
from diagnoser.sources.prometheus.selectors import UP
from diagnoser.sources.prometheus.targets import Known

SAME_SCRAPE_SECONDS = 0.05
"""Stamps this near are of one scrape: agents that write on behalf of a scraper may round them."""


def scrapes(known: Known, series: Iterable[Series], server: str, complete: bool = True) -> list[Scrape]:
    """Every scrape of the target, in time order.

    `complete` is False where the server warned: then a scrape without engine series proves nothing and is left out.
    """
    found = list(series)
    same = _stamps(at for one in found for at, _ in one.values)
    ups = {same[at]: value for one in found if one.name == UP for at, value in one.values}
    pages: dict[float, list[Sample]] = defaultdict(list)
    for one in found:
        if one.name != UP:
            name, labels = one.name, known.on_page(one.labels)
            for at, value in one.values:
                pages[same[at]].append(Sample(name, labels, value))
    target = Target(known.name, server)
    read = (_scrape(target, at, pages.get(at, ()), ups.get(at), server, complete) for at in sorted({*pages, *ups}))
    return [scrape for scrape in read if scrape is not None]


def _scrape(
    target: Target, at: float, samples: Sequence[Sample], up: float | None, server: str, complete: bool
) -> Scrape | None:
    if up == 0:
        return Scrape(target, at, error=f"{target.name} could not be scraped by {server} (up is 0 there).")
    if all(math.isnan(sample.value) for sample in samples):
        missing = "was scraped, but its page had no series of an engine (up is 1)."
        return Scrape(target, at, error=f"{target.name} {missing}") if up and not samples and complete else None
    return Scrape(target, at, tuple(samples), None, len(samples))


def _stamps(times: Iterable[float]) -> Mapping[float, float]:
    """Every stamp and that of its scrape: the first one within SAME_SCRAPE_SECONDS."""
    out: dict[float, float] = {}
    first = -math.inf
    for at in sorted(set(times)):
        first = first if at - first <= SAME_SCRAPE_SECONDS else at
        out[at] = first
    return out
