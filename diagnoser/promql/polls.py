"""Pages and polls as such: how many there were, how old the newest is, and which polls failed (`up`)."""

from __future__ import annotations

from diagnoser.promql.place import Place
from diagnoser.promql.text import duration, name_matcher
from diagnoser.signals.base import scalar

UP = "up"
LOST_AFTER = 3600.0
"""An engine that gave its last page longer ago is forgotten, seconds. As for the direct path (docs/prometheus.md)."""


def pages(place: Place, what: str) -> str:
    """The text of signals/promql's Pages."""
    here = place.outside()
    if what in ("failed", "failed_at_end"):
        return here.to_ranks(failed(here) if what == "failed" else failed_at_end(here))
    return {"count": count, "lost": lost, "age": age}[what](here)


def age(here: Place) -> str:
    """Seconds since the newest page."""
    anchors = here.family.served.anchors
    newest = (f"max by ({here.labels}) (timestamp({here.server_selector(name)}{here.at}))" for name in anchors)
    return f"(time() - ({' or '.join(newest)}))"


def count(here: Place) -> str:
    """Of the anchor that was on most pages: some are born with the first request."""
    counted = [
        f"count_over_time({here.server_selector(name)}{here.over_window()})" for name in here.family.served.anchors
    ]
    apart = [f'label_replace({text}, "anchor", "{i}", "", "")' for i, text in enumerate(counted)]
    return f"max by ({here.labels}) ({' or '.join(apart) if len(apart) > 1 else counted[0]})"


def lost(here: Place) -> str:
    """Polls in the window of ranks that were there within the hour, if none of those polls gave a page."""
    inner = ",".join([name_matcher(here.family.served.anchors), *([here.match] if here.match else [])])
    seen = f"count by ({here.labels}) (last_over_time({{{inner}}}[{duration(LOST_AFTER)}]))"
    up = f"{UP}{here.over_window()}"
    silent = f"max by ({here.place}) (count_over_time({up}) unless sum_over_time({up}) > 0)"
    return f"(({seen} unless {here.anchors()}) * 0 + on ({here.place}) group_left () {silent})"


def failed(here: Place) -> str:
    """Polls in the window that gave no page."""
    up = f"{UP}{here.over_window()}"
    return f"max by ({here.place}) (count_over_time({up}) - sum_over_time({up}))"


def failed_at_end(here: Place) -> str:
    """The newest n polls lie in n steps, whenever the last one was; a little more, for jitter."""
    needed = round(scalar(here.params, "failures_unreachable"))  # more of them say nothing more
    polls = [(n, f"{UP}[{duration((n + 0.02) * here.span.step)}]{here.at}") for n in range(1, needed + 1)]
    none = f"(count_over_time({UP}{here.over_window()}) * 0)"
    silent = (f"((max_over_time({up}) == bool 0) * (count_over_time({up}) >= bool {n}) or {none})" for n, up in polls)
    return f"max by ({here.place}) ({' + '.join(silent)})"
