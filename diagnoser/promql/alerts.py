"""Alerting rules over the recorded verdicts and checks, with words from the same rule files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from diagnoser.promql.records import PREFIX
from diagnoser.rulebook.rules import Check, RemedyRule, Rulebook, VerdictRule

QUIET = ("none", "unknown")
"""Bottlenecks that are no alarm by themselves; `unknown` only where a mode says what is wrong with the data."""
DEFAULT_HOLD = "2m"
LABELS = ("job", "instance", "rank")
NUMBERS = (
    ("waiting_last_requests", "%.0f requests wait. "),
    ("l1_used_ratio_last", "%.0f %% of the KV pool is held. "),
    ("ttft_p99_low_seconds", "TTFT P99 is above %.1f s. "),
)
"""What a description tells with its value, if the server has it: recorded signal, text."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alerting rule."""

    name: str
    expr: str
    hold: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Naming:
    """How the recorded series end, and where the runbooks are."""

    window: str
    runbooks: str


def alerts(book: Rulebook, naming: Naming) -> tuple[Alert, ...]:
    """One a verdict with a bottleneck, one a check that is a warning by itself."""
    verdicts = (_verdict(rule, book, naming) for rule in book.verdicts if _alarming(rule))
    checks = (_check(check, naming) for check in book.checks if check.kind != "data" and check.severity != "info")
    return (*verdicts, *checks)


def _alarming(rule: VerdictRule) -> bool:
    return rule.bottleneck not in QUIET or rule.mode in ("invalid_series", "missing_metrics")


def _verdict(rule: VerdictRule, book: Rulebook, naming: Naming) -> Alert:
    direct = next((check for name in rule.direct if (check := book.check(name)) is not None), None)
    headline = rule.headline.split(", {")[0]
    remedy = next((book.remedies[name] for name in rule.remedies if name in book.remedies), None)
    return Alert(
        f"Engine{_camel(rule.id)}",
        f'max without (confidence) ({PREFIX}verdict:{naming.window}{{rule="{rule.id}"}}) == 1',
        direct.hold if direct is not None else DEFAULT_HOLD,
        {},  # severity and bottleneck are labels of the series
        {
            "summary": f"{{{{ $labels.instance }}}} rank {{{{ $labels.rank }}}}: {headline}",
            "description": "".join([*_numbers(naming), rule.meaning, *_first(remedy)]),
            "runbook_url": f"{naming.runbooks}/verdicts.md#{rule.id}",
        },
    )


def _check(check: Check, naming: Naming) -> Alert:
    return Alert(
        f"EngineCheck{_camel(check.id)}",
        f'{PREFIX}check:{naming.window}{{check="{check.id}"}} == 1',
        check.hold,
        {"severity": check.severity},
        {
            "summary": f"{{{{ $labels.instance }}}} rank {{{{ $labels.rank }}}}: {check.label}",
            "description": "".join([*_numbers(naming), f"{check.question} Yes. {check.rationale}"]),
            "runbook_url": f"{naming.runbooks}/checks/{check.id}.md",
        },
    )


def _numbers(naming: Naming) -> Iterator[str]:
    """Templates that ask the server for a value of the same rank."""
    where = ",".join(f"{label}='%s'" for label in LABELS)
    labels = " ".join(f"$labels.{label}" for label in LABELS)
    for name, text in NUMBERS:
        series = f"{PREFIX}{name}:{naming.window}{{{where}}}"
        if name.endswith("_ratio_last"):
            series = f"100 * {series}"
        value = f'{{{{ . | first | value | printf "{text.strip()} " }}}}'
        yield f'{{{{ with printf "{series}" {labels} | query }}}}{value}{{{{ end }}}}'
    state = f"{PREFIX}l2_state:{naming.window}{{{where}}}"
    yield f'{{{{ with printf "{state}" {labels} | query }}}}L2: {{{{ . | first | label "state" }}}}. {{{{ end }}}}'


def _first(remedy: RemedyRule | None) -> Iterator[str]:
    if remedy is not None:
        flags = ", or ".join(dict.fromkeys(flag for flag in remedy.flags.values() if flag))
        yield f" First: {remedy.action}" + (f" ({flags})." if flags else ".")


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
