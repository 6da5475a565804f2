"""For tickets, chat and incident reports: the same words as the text output, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnoser.model import Answer, CheckResult, Diagnosis
from diagnoser.outputs import words
from diagnoser.outputs.base import Look, Moment, Output, Report, worst_first
from diagnoser.units import count, percent

KINDS = ("checklist", "look-alike")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def render(report: Report, look: Look) -> str:
    """One section an engine, the worst first; with `verbose` every check."""
    found = worst_first(report.diagnoses)
    many = len({(d.engine.target, d.engine.rank) for d in found}) > 1
    parts = [_summary(found)] if len(found) > 1 else []
    parts += [_section(diagnosis, many, look) for diagnosis in found]
    parts += [_timeline(report.timeline)] if len(report.timeline) > 1 else []
    parts += [f"> {_safe(note)}\n" for note in report.notes]
    return "\n".join(parts)


def _safe(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", words.clean(text))


def _code(text: str) -> str:
    return f"`{words.clean(text).replace('`', chr(39))}`" if text else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _summary(found: Sequence[Diagnosis]) -> str:
    rows = []
    for one in found:
        waiting, used, closed = words.signal(one, "waiting_last_requests"), words.used_part(one), words.closed(one)
        rows.append(
            (
                _safe(one.engine.target),
                _safe(one.engine.rank),
                _safe(one.verdict.headline),
                "-" if closed is None else percent(closed),
                "-" if waiting is None else count(waiting),
                "-" if used is None else words.percents(used),
                words.ttft_p99(one) or "-",
                one.verdict.trend,
            )
        )
    return _table(("engine", "rank", "verdict", "closed", "waiting", "used", "TTFT P99", "trend"), rows)


def _section(diagnosis: Diagnosis, many: bool, look: Look) -> str:
    verdict = diagnosis.verdict
    parts = [
        f"## {_safe(verdict.headline)}\n",
        f"{_safe(words.who(diagnosis, many))}  \n{words.span(diagnosis)}; {words.gravity(diagnosis)}\n",
    ]
    parts.append("".join(f"- {_safe(sentence)}\n" for sentence in verdict.because))
    parts.append(_state(diagnosis) if diagnosis.scrapes else "")
    parts.append(
        "".join(
            f"- **{_safe(f.code.replace('_', ' '))}** ({f.severity}): {_safe(f.text)}\n" for f in diagnosis.findings
        )
    )
    parts.append(_checks(diagnosis, look) if diagnosis.scrapes else "")
    parts.append(_remedies(diagnosis))
    parts.append(_facts(diagnosis) if look.verbose else "")
    return "\n".join(part for part in parts if part)


def _state(diagnosis: Diagnosis) -> str:
    used, pool = words.used_part(diagnosis), diagnosis.l1
    size = words.amount(pool.capacity, "tokens") if pool.capacity else "size not known"
    l1 = f"used {words.percents(used)} of {size}" if used else f"not known: {pool.reason}"
    rest = words.rest_words(pool)
    rows = [("L1", _safe(f"{l1}; {rest}" if rest else l1)), ("L2", _safe(words.tier_words(diagnosis)))]
    ttft = words.ttft_words(diagnosis).replace(words.NO_BREAK, " ")
    more, now = words.more_l2(diagnosis), words.ttft_now(diagnosis)
    rows += [("more L2?", _safe(more))] if more and words.asks_for_l2(diagnosis) else []
    rows += [("TTFT", _safe(ttft))] if ttft else []
    return _table(("", "state"), [*rows, *([("", _safe(now))] if now else [])])


def _checks(diagnosis: Diagnosis, look: Look) -> str:
    decisive = set(diagnosis.verdict.decisive)
    rows = [_row(check) for check in diagnosis.checks if look.verbose or _matters(check, decisive)]
    return _table(("answer", "check", "reason", "series"), rows) if rows else ""


def _matters(check: CheckResult, decisive: set[str]) -> bool:
    return check.id in decisive or (check.kind in KINDS and check.answer is Answer.YES)


def _row(check: CheckResult) -> tuple[str, ...]:
    series = dict.fromkeys(name for evidence in check.evidence for name in evidence.series)
    return check.answer.value, _safe(check.label), _safe(check.reason), ", ".join(map(_code, list(series)[:2]))


def _remedies(diagnosis: Diagnosis) -> str:
    lines = ["Do, in this order:\n\n"] if diagnosis.remedies else []
    for number, remedy in enumerate(diagnosis.remedies, 1):
        costs = "" if remedy.side_effect == "none" else f"; costs: {_safe(remedy.side_effect)}"
        lines.append(f"{number}. **{_safe(remedy.action)}**: {_code(remedy.flag)}. {_safe(remedy.effect)}{costs}\n")
    nots = [f"- Not: {_safe(text)}\n" for text in diagnosis.not_remedies]
    return "".join(lines) + ("\n" if lines and nots else "") + "".join(nots)


def _facts(diagnosis: Diagnosis) -> str:
    rows = [(_code(fact.name), _safe(str(fact.value)), _safe(fact.origin)) for fact in diagnosis.facts.values()]
    return _table(("fact", "value", "origin"), rows)


def _timeline(moments: Sequence[Moment]) -> str:
    rows: list[tuple[str, ...]] = []
    last: dict[tuple[str, str], str] = {}
    for moment in moments:
        key = (moment.target, moment.rank)
        if last.get(key) != moment.headline:
            last[key] = moment.headline
            rows.append(
                (
                    f"{words.day(moment.at)} {words.clock(moment.at)}",
                    _safe(moment.target),
                    _safe(moment.rank),
                    _safe(moment.headline),
                )
            )
    return _table(("from", "engine", "rank", "verdict"), rows)


OUTPUT = Output("markdown", "text/markdown; charset=utf-8", render)
