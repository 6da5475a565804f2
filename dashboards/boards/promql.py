"""Queries to Prometheus. Each asks for series of one family, or for those that the recording rules make of all."""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from boards.words import CODES, L2_CODES

WINDOW = "${window}"
RATE = "$__rate_interval"
ENGINE = 'job=~"$job",instance=~"$instance"'
OF_ALL = 'job=~"$job",model=~"$model",instance=~"$instance",rank=~"$rank"'
RANK = {"vllm": 'engine=~"$rank"', "sglang": 'dp_rank=~"$rank|",priority=""'}
"""SGLang writes no dp_rank without data parallelism, and the total of all priorities with an empty one."""
WHO = "job, model, instance, rank, family"


@dataclass(frozen=True)
class Query:
    """One target of a panel."""

    expr: str
    legend: str = ""
    instant: bool = False
    table: bool = False

    def target(self, ref: str) -> Dataquery:
        """As a panel has it."""
        made = Dataquery().expr(self.expr).ref_id(ref).legend_format(self.legend or "__auto")
        made.format(PromQueryFormat.TABLE if self.table else PromQueryFormat.TIME_SERIES)
        return made.instant() if self.instant else made.range()


def recorded(what: str, more: str = "") -> str:
    """A series of all families, for the chosen engines."""
    return f"rank:diagnoser_{what}:{WINDOW}{{{OF_ALL}{',' * bool(more)}{more}}}"


def of_family(family: str, what: str, more: str = "") -> str:
    """A recorded series of one family, with the engine's own labels."""
    return f"rank:{family}_{what}:{WINDOW}{{{ENGINE},{RANK[family]}{',' * bool(more)}{more}}}"


def raw(family: str, metric: str, more: str = "") -> str:
    """A metric of an engine."""
    return f"{family}:{metric}{{{ENGINE},{RANK[family]}{',' * bool(more)}{more}}}"


def rate(family: str, metric: str, more: str = "") -> str:
    """Of a counter, a second."""
    return f"rate({raw(family, metric, more)}[{RATE}])"


def service(metric: str, more: str = "") -> str:
    """A metric of the service; its `target` is the engine's address."""
    return f'diagnoser_{metric}{{target=~"$instance",rank=~"$rank"{"," * bool(more)}{more}}}'


def coded(what: str, label: str, codes: dict[str, float], by: str) -> str:
    """A number for the label that is set: what a state timeline draws."""
    found = {name: f'{label}="{name}"' for name in codes}
    parts = (f"{recorded(what, found[name])} * {code:g}" for name, code in codes.items())
    return f"max by ({by}) ({' or '.join(parts)})"


def verdict_code(by: str) -> str:
    """CODES of the verdict."""
    return coded("verdict", "bottleneck", CODES, by)


def l2_code(by: str) -> str:
    """L2_CODES of the state."""
    return coded("l2_state", "state", L2_CODES, by)


def worst_first() -> str:
    """Urgency (0 none, 1 unknown, 2 warning, 3 unreachable, 4 critical) plus the blocked part of the window."""
    kinds = {
        'severity="critical",bottleneck!~"none|unknown|unreachable"': 4, 'bottleneck="unreachable"': 3,
        'severity=~"warning|info",bottleneck!~"none|unknown|unreachable"': 2, 'bottleneck="unknown"': 1,
        'bottleneck="none"': 0,
    }  # fmt: skip
    ranked = " or ".join(f"{recorded('verdict', labels)} * {number}" for labels, number in kinds.items())
    verdict = f"max by ({WHO}, bottleneck, mode, severity, confidence, rule) ({ranked})"
    blocked = f"0.99 * max by ({WHO}) ({recorded('blocked_ratio')})"
    on = f"on ({WHO})"
    return f"({verdict} + {on} group_left () ({blocked})) or ({verdict} unless {on} ({blocked}))"


def edge(family: str, quantile: float, upper: bool) -> str:
    """An edge of the TTFT bucket that the quantile lies in: no interpolation within the bucket."""
    bucket = f"sum by (le) (increase({raw(family, 'time_to_first_token_seconds_bucket')}[{WINDOW}]))"
    count = f"sum(increase({raw(family, 'time_to_first_token_seconds_count')}[{WINDOW}])) > 0"
    reached = f"{bucket} >= bool on () group_left () ({quantile:g} * ({count}))"
    found = f"histogram_quantile({'1' if upper else '1e-18'}, {reached})"
    return found if upper else lower(found)


def lower(expr: str) -> str:
    """The lower edge of the first bucket is 0, and not the 1e-19 that the quantile makes of it."""
    return f"round({expr}, 1e-06)"
