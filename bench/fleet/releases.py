"""Mixed versions: the footage of one engine as an older release, or the OpenMetrics spelling, would have shown it.

Long recordings with a truth file exist of one release a family; of the others there are single pages. So a page says
which metrics a release has and how they are spelled, and the recording gives the values. Series that only the old page
has are left out, so an old release shows less, never something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from functools import cache

from .footage import DATA, Footage, recorded

_PAGE = re.compile(r"(vllm|sglang)-(\d[\d.]*\d)(-openmetrics)?\.tar\.xz")
ONCE = {
    "vllm_gpu_cache_usage_perc": "vllm_kv_cache_usage_perc",
    "vllm_gpu_prefix_cache_hits_total": "vllm_prefix_cache_hits_total",
    "vllm_gpu_prefix_cache_queries_total": "vllm_prefix_cache_queries_total",
    "vllm_time_per_output_token_seconds_bucket": "vllm_inter_token_latency_seconds_bucket",
    "vllm_time_per_output_token_seconds_sum": "vllm_inter_token_latency_seconds_sum",
    "vllm_time_per_output_token_seconds_count": "vllm_inter_token_latency_seconds_count",
}
"""What a metric was called before, and its present name."""
_SHORTEST = 20.0
_ONE_WAY = ("i-killed", "q-engine-hung")
"""What they show happens once; going round, it would end each lap."""


def as_release(footage: Footage, page: Footage) -> Footage:
    """The footage with the metrics of `page`'s release only, spelled as there."""
    spelled = {ONCE.get(plain, plain): name for name in _names(page) for plain in (name.replace(":", "_"),)}
    keys = {name: {key for known, labels in page.series if known == name for key in labels} for name in _names(page)}
    kept = [i for i, (name, _) in enumerate(footage.series) if name.replace(":", "_") in spelled]
    series = [_spelled(footage.series[i], spelled, keys) for i in kept]
    return replace(
        footage,
        version=page.version,
        series=tuple(series),
        counting=footage.counting[kept],
        dated=footage.dated[kept],
        values=footage.values[:, kept],
    )


def _names(page: Footage) -> dict[str, None]:
    return dict.fromkeys(name for name, _ in page.series)


def _spelled(
    series: tuple[str, Mapping[str, str]], spelled: Mapping[str, str], keys: Mapping[str, Set[str]]
) -> tuple[str, Mapping[str, str]]:
    name = spelled[series[0].replace(":", "_")]
    labels = series[1]
    if name.endswith("_info"):  # its labels are its values, and each release has its own
        labels = {key: value for key, value in labels.items() if key in keys[name]}
    return name, labels


def _pages(wanted: Set[str] | None) -> Iterator[Footage]:
    for path in sorted((DATA / "dialects").glob("*.tar.xz")):
        if _PAGE.fullmatch(path.name):
            yield recorded(path, wanted)


@cache
def stock(wanted: Set[str] | None = None) -> tuple[tuple[Footage, ...], ...]:
    """All footage: for each recording that holds one state long enough, it as recorded and as every other release."""
    pages = list(_pages(wanted))
    long = [recorded(path, wanted) for path in sorted((DATA / "recordings").glob("*.tar.xz"))]
    held = [one for one in long if one.lap >= _SHORTEST and not one.name.endswith(_ONE_WAY)]
    return tuple((one, *(as_release(one, page) for page in pages if _is_other(page, one))) for one in held)


def _is_other(page: Footage, one: Footage) -> bool:
    return page.family == one.family and page.name != f"{one.family}-{one.version}"
