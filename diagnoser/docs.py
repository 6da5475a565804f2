"""The documentation pages: one a check, and one each for verdicts, thresholds, signals and facts. All from the rules
and the code.

`python -m diagnoser.docs FOLDER` writes them; a test holds that docs/ is current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from diagnoser.data import data_dir
from diagnoser.engines.base import FACTS, TRAITS
from diagnoser.promql.names import families
from diagnoser.promql.said import unsaid
from diagnoser.rulebook.conditions import CheckIs, Compare, Condition, Join, leaves
from diagnoser.rulebook.load import load
from diagnoser.rulebook.rules import Check, Gate, RemedyRule, Rulebook, Threshold, VerdictRule
from diagnoser.signals.base import intervals, signals

GENERATED = "<!-- Generated from rules/ and the code by `python -m diagnoser.docs docs`. Edit those instead. -->"


def pages(book: Rulebook) -> Iterator[tuple[str, str]]:
    """(path below docs/, content) of every page."""
    yield "checks/README.md", _page("Checks", [_index(book)])
    for check in book.checks:
        yield f"checks/{check.id}.md", _page(check.label.capitalize(), _check(check, book))
    yield "verdicts.md", _page("Verdicts", [_gates(book.gates), *(_verdict(rule, book) for rule in book.verdicts)])
    yield "thresholds.md", _page("Thresholds", [_thresholds(book.thresholds.values())])
    yield (
        "signals.md",
        _page(
            "Signals and facts",
            [_signals(book), _unsaid(book), _names("Facts", FACTS), _names("Engine traits", TRAITS)],
        ),
    )


def write(book: Rulebook, folder: Path) -> list[Path]:
    """Writes all pages and removes those of checks that are gone; returns what was written."""
    wanted = {folder / name: text for name, text in pages(book)}
    for old in (folder / "checks").glob("*.md") if (folder / "checks").is_dir() else ():
        if old not in wanted:
            old.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(wanted)


def words(condition: Condition) -> str:
    """A condition as a person writes it."""
    if isinstance(condition, Compare):
        return f"`{condition.signal} {condition.op} {condition.threshold or f'{condition.value:g}'}`"
    if isinstance(condition, CheckIs):
        return f"[{condition.check}](checks/{condition.check}.md) is {condition.answer}"
    if isinstance(condition, Join):
        if not condition.items:
            return "always"
        joined = f" {'and' if condition.how == 'all' else 'or'} ".join(words(item) for item in condition.items)
        return f"({joined})" if len(condition.items) > 1 else joined
    return f"not {words(condition.item)}"


def _page(title: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", GENERATED, *(part.strip() for part in parts if part.strip())]) + "\n"


def _index(book: Rulebook) -> str:
    rows = [f"| [{c.id}]({c.id}.md) | {c.kind} | {c.question} |" for c in book.checks]
    return "\n".join(["| check | kind | question |", "|---|---|---|", *rows])


def _check(check: Check, book: Rulebook) -> Iterator[str]:
    yield f"**{check.question}**"
    yield f"`{check.id}` · {check.kind} · severity {check.severity} · for {check.hold}"
    yield check.rationale
    yield check.doc
    yield f"**yes** if {words(check.yes)}"
    if check.no is not None:
        yield f"**no** if {words(check.no)}"
    yield f"**unknown** otherwise. {check.unknown}" if check.no is not None else f"**unknown**: {check.unknown}"
    yield _thresholds(_used(check, book)) if _used(check, book) else ""
    yield f"Source: {check.source}"
    yield f"Finding when yes: `{check.finding}`" if check.finding else ""
    yield "Settles when yes: " + ", ".join(f"`{t}` = `{v}`" for t, v in check.settles.items()) if check.settles else ""
    yield f"[All checks](README.md) · `diagnose explain {check.id}`"


def _used(check: Check, book: Rulebook) -> list[Threshold]:
    conditions = [check.yes] if check.no is None else [check.yes, check.no]
    names = [leaf.threshold for c in conditions for leaf in leaves(c) if isinstance(leaf, Compare) and leaf.threshold]
    return [book.thresholds[name] for name in dict.fromkeys(names)]


def _thresholds(thresholds: Iterable[Threshold]) -> str:
    rows = [f"| `{t.name}` | {_value(t)} | {t.unit} | {t.reason} |" for t in thresholds]
    return "\n".join(["| threshold | value | unit | reason |", "|---|---|---|---|", *rows])


def _value(threshold: Threshold) -> str:
    values = threshold.value if isinstance(threshold.value, tuple) else (threshold.value,)
    return ", ".join(f"{v:g}" for v in values)


def _gates(gates: Iterable[Gate]) -> str:
    rows = [f"| {g.gate} | `{g.id}` | {words(g.when) if g.when else 'by elimination'} | {g.reason} |" for g in gates]
    said = "Decided for every interval between two pages, in this order. The first that holds has the interval."
    head = ["## Gates", "", said, "", "| gate | sign | holds if | why |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, "", "## The decision list"])


def _signals(book: Rulebook) -> str:
    lacking = {(one.signal, one.family) for one in unsaid(book)}
    titles = [family.title for family in families()]

    def row(name: str, unit: str, over: str, meaning: str) -> str:
        able = [title for title in titles if (name, title) not in lacking]
        return f"| `{name}` | {unit} | {over} | {', '.join(able) or '-'} | {meaning} |"

    rows = [row(s.name, s.unit, "window", s.meaning) for s in signals()]
    rows += [row(s.name, s.unit, "interval", s.meaning) for s in intervals()]
    said = "PromQL: the families for which a metrics server can compute it ([how](prometheus.md))."
    head = ["## Signals", "", said, "", "| signal | unit | over | PromQL | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _unsaid(book: Rulebook) -> str:
    found: dict[tuple[str, str], list[str]] = {}
    for one in unsaid(book):
        found.setdefault((one.signal, one.reason), []).append(one.family)
    rows = [f"| `{name}` | {', '.join(titles)} | {reason} |" for (name, reason), titles in found.items()]
    said = "It is `unknown` where a metrics server computes the signals; whoever has the pages knows it."
    head = ["## What PromQL cannot say", "", said, "", "| signal | for | because |", "|---|---|---|"]
    return "\n".join([*head, *rows])


def _names(title: str, meanings: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {meaning} |" for name, meaning in meanings.items()]
    return "\n".join([f"## {title}", "", "| name | meaning |", "|---|---|", *rows])


def _verdict(rule: VerdictRule, book: Rulebook) -> str:
    name = f"{rule.bottleneck} ({rule.mode})" if rule.mode else rule.bottleneck
    remedies = [_remedy(book.remedies[r]) for r in rule.remedies if r in book.remedies]
    lines = [f'<a id="{rule.id}"></a>', f"### {name}", "", rule.meaning, "", f"When {words(rule.when)}."]
    if remedies:
        lines += ["", "| do | vLLM | SGLang | effect | side effect |", "|---|---|---|---|---|", *remedies]
    lines += [f"\nNot: {text}" for text, _ in rule.not_remedies]
    return "\n".join(lines)


def _remedy(remedy: RemedyRule) -> str:
    anything = remedy.flags.get("any", "-")
    vllm, sglang = (remedy.flags.get(family, anything) for family in ("vllm", "sglang"))
    return f"| {remedy.action} | {vllm} | {sglang} | {remedy.effect} | {remedy.side_effect} |"


if __name__ == "__main__":
    for written in write(load([data_dir("rules")]), Path(sys.argv[1])):
        print(written)
