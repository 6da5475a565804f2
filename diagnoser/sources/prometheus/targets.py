"""Which engines a server knows: series grouped into targets, each what was one /metrics page.

Prometheus adds a target's labels (job, instance, pod, ...) to every series of its page, and to `up`, which has nothing
else: so the labels of `up` are the target's. Without `up` they are what all series of one job and instance carry,
except the labels that engines write themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from diagnoser.sources.prometheus.api import Server, together
from diagnoser.sources.prometheus.selectors import UP, names, over, selector

Labels = Mapping[str, str]
_RANKS = ("dp_rank", "tp_rank", "pp_rank", "moe_ep_rank", "attn_cp_rank", "attn_tp_rank")
PAGE_LABELS = frozenset(("__name__", "engine", "engine_type", "model_name", "pid", "priority", "le", "reason", *_RANKS))
"""What pages of engines write on the series that engines are found by. A target label of that name has pushed the
page's own aside (exported_engine), or given way to it (honor_labels).
"""
ASIDE = "exported_"


@dataclass(frozen=True, slots=True)
class Known:
    """One target. `name` is what people are shown: the instance, with more where that is not unique."""

    name: str
    labels: Labels
    has_up: bool = True

    def likeness(self, labels: Labels) -> int:
        """One more than the labels a series shares with the target; 0 if it cannot be the target's."""
        shared = 1
        for key, value in self.labels.items():
            found = labels.get(key)
            if found == value:
                shared += 1
            elif key in ("job", "instance") or (found is not None and key not in PAGE_LABELS):
                return 0
        return shared

    def on_page(self, labels: Labels) -> dict[str, str]:
        """The labels as the page had them."""
        own = {k: v for k, v in labels.items() if k != "__name__" and self.labels.get(k) != v}
        aside = {k.removeprefix(ASIDE): v for k, v in own.items() if k.startswith(ASIDE)}
        return {**{k: v for k, v in own.items() if not k.startswith(ASIDE)}, **aside} if aside else own


class Owners:
    """Finds the target of a series."""

    def __init__(self, targets: Iterable[Known]) -> None:
        self._by_place: dict[tuple[str, str], list[Known]] = defaultdict(list)
        for target in targets:
            self._by_place[_place(target.labels)].append(target)

    def of(self, labels: Labels) -> Known | None:
        """The target that shares most labels with the series."""
        found = [(known.likeness(labels), known) for known in self._by_place.get(_place(labels), ())]
        best = max(found, key=lambda item: item[0], default=(0, None))
        return best[1] if best[0] else None


@dataclass(frozen=True, slots=True)
class Discovery:
    """The targets with engine series, by name, and what the server said beside them."""

    targets: tuple[Known, ...]
    warnings: tuple[str, ...] = ()


async def discover(server: Server, anchors: Collection[str], match: str, at: float, seconds: float) -> Discovery:
    """Every target that had a series of `anchors` in the `seconds` before `at`: two queries. Raises ServerError."""
    engines = f"last_over_time({selector(names(anchors), match)}{over(seconds)})"
    ups = f"last_over_time({UP}{over(seconds)}) and on (job, instance) {engines}"
    found, up = await together(server.query(promql, at) for promql in (engines, ups))
    targets = group([one.labels for one in found.series], [one.labels for one in up.series])
    return Discovery(targets, tuple(dict.fromkeys(found.warnings + up.warnings)))


def group(series: Sequence[Labels], ups: Sequence[Labels]) -> tuple[Known, ...]:
    """The targets of these series."""
    owners = Owners(Known("", _without_name(labels)) for labels in ups)
    found: dict[frozenset[tuple[str, str]], Known] = {}
    rest: dict[tuple[str, str], list[Labels]] = defaultdict(list)
    for labels in series:
        owner = owners.of(labels)
        if owner is None:
            rest[_place(labels)].append(labels)
        else:
            found[frozenset(owner.labels.items())] = owner
    for alike in rest.values():
        shared = set.intersection(*(set(labels) for labels in alike)) - PAGE_LABELS
        for labels in alike:
            own = {key: labels[key] for key in sorted(shared)}
            found[frozenset(own.items())] = Known("", own, has_up=False)
    return _named(list(found.values()))


def _named(targets: Sequence[Known]) -> tuple[Known, ...]:
    by_instance: dict[str, list[Known]] = defaultdict(list)
    for target in targets:
        by_instance[target.labels.get("instance", "")].append(target)
    named = (
        Known(_name(instance, one.labels, same), one.labels, one.has_up)
        for instance, same in by_instance.items()
        for one in same
    )
    return tuple(sorted(named, key=lambda known: known.name))


def _name(instance: str, labels: Labels, same: Sequence[Known]) -> str:
    """The instance, and the labels that tell it from others of that instance."""
    differ = [k for k in sorted({k for one in same for k in one.labels}) if len({o.labels.get(k) for o in same}) > 1]
    if not instance and not differ:
        differ = sorted(labels)
    shown = ",".join(f"{key}={labels[key]}" for key in differ if key in labels)
    return f"{instance} {{{shown}}}".strip() if shown else instance or "{}"


def _place(labels: Labels) -> tuple[str, str]:
    return labels.get("job", ""), labels.get("instance", "")


def _without_name(labels: Labels) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key != "__name__"}
