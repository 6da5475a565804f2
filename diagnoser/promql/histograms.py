"""Numbers that PromQL has no function for, by small histograms: the edges of a quantile's bucket, a number in a label.

`le` is the one label that PromQL reads as a number, and a quantile of a histogram with one observation is its edge.
"""

from __future__ import annotations

from collections.abc import Callable

from diagnoser.engines.base import Alias
from diagnoser.engines.versions import parse
from diagnoser.promql.aliases import Aliases
from diagnoser.promql.text import ones

AT_THE_EDGE = "1e-18"
"""A quantile so small that interpolation adds nothing to the lower edge of the bucket."""


def edge_of(here: Aliases, alias: Alias, q: float, side: str, shape: Callable[[str], str]) -> str | None:
    buckets = here.joined_series(alias, shape, "_bucket", ", le")
    count = here.joined_series(alias, shape, "_count")
    if buckets is None or count is None:
        return None
    labels = here.place if alias.scope == "server" else here.labels
    step = f"({buckets} >= bool on ({labels}) group_left () ({q:g} * ({count} > 0)))"
    if side == "top":  # one observation beyond it, and a quantile there reads the edge before +Inf
        edge = f'histogram_quantile(1, label_replace({ones(count)}, "le", "+Inf", "", "") or {buckets} * 0)'
    elif side == "low":
        edge = f"histogram_quantile({AT_THE_EDGE}, {step})"
    else:
        last = f"(count by ({labels}) ({step} == 1) == 1)"
        edge = f"((histogram_quantile(1, {step}) unless {last}) or {last} * Inf)"
    return here.guarded(alias, here.to_ranks(edge) if alias.scope == "server" else edge)


def label(here: Aliases, name: str) -> str | None:
    """A number in a label, by a histogram whose only bucket ends there: `le` is the one label PromQL reads as a
    number. Of two configurations in one window (a restart) it is the larger.
    """
    info = here.family.served.info
    if not info:
        return None
    series = f"max by ({here.place}, {name}) (last_over_time({here.server_selector(info)}{here.over_window()}))"
    bucket = f'label_replace({series}, "le", "$1", "{name}", "([0-9.]+)")'
    last = f'label_replace({series}, "le", "+Inf", "", "")'
    return here.to_ranks(f"max by ({here.place}) (histogram_quantile(1, {bucket} or {last}) >= 0)")


def labelled(here: Aliases, name: str, value: str) -> str | None:
    """1 where the configuration says so."""
    info = here.family.served.info
    if not info:
        return None
    series = here.server_selector(info, {name: value})
    return here.to_ranks(f"max by ({here.place}) (last_over_time({series}{here.over_window()}) * 0 + 1)")


def ranks(here: Aliases) -> str:
    """Ranks of the target: those that are seen, or as many as the lowest number tells in old releases, where only
    the last rank of a process is on its page.
    """
    served = here.family.served
    seen = f"count by ({here.place}) ({here.anchors()})"
    proof = here.proof(parse(served.all_ranks_from)) if served.all_ranks_from else None
    if proof is None:
        return here.to_ranks(seen)
    bucket = f'label_replace({here.anchors()}, "le", "$1", "{served.rank_label}", "([0-9]+)")'
    both = f'{bucket} or label_replace({seen}, "le", "+Inf", "", "")'
    number = f"histogram_quantile(1, max by ({here.place}, le) ({both}))"
    return here.to_ranks(f"((({number} + 1 > {seen}) unless on ({here.place}) {proof}) or {seen})")
