"""Several engines at once: one line each, the worst first, and which rank is hot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.text import Text

from diagnoser.model import Diagnosis
from diagnoser.outputs import words
from diagnoser.outputs.base import Look, urgency, worst_first
from diagnoser.outputs.terminal.page import URGENCY, fitted, wrapped
from diagnoser.units import count, duration, percent

ROWS = 50
"""Engines in the table, unless all are asked for."""
HEADS = ("closed", "wait", "used", "TTFT P99", "page")
WIDTHS = (8, 6, 7, 15, 6)
ARROWS = {"rising": " ↑", "recovering": " ↓"}
SILENT = (1, 3)
"""Urgencies of those that cannot be told about: unknown and unreachable."""
Ages = Mapping[tuple[str, str], float]
"""Seconds since the newest page, by target and rank."""


def several_ranks(diagnoses: Sequence[Diagnosis]) -> frozenset[str]:
    """Targets that more than one rank was diagnosed of."""
    ranks: dict[str, set[str]] = {}
    for diagnosis in diagnoses:
        ranks.setdefault(diagnosis.engine.target, set()).add(diagnosis.engine.rank)
    return frozenset(target for target, found in ranks.items() if len(found) > 1)


def summary(diagnoses: Sequence[Diagnosis], look: Look, ages: Ages | None = None) -> list[Text]:
    """A table of all diagnoses and a sentence for every hot rank; with the age of the newest page if given."""
    many = several_ranks(diagnoses)
    columns = len(HEADS) if ages is not None else len(HEADS) - 1
    heads, widths = HEADS[:columns], WIDTHS[:columns]
    listed = worst_first(diagnoses)
    listed = listed if look.verbose else listed[:ROWS]
    rows = [(_name(d, many), short_headline(d), _numbers(d, ages)[:columns], URGENCY[urgency(d)]) for d in listed]
    room = look.width - 2 - sum(widths)
    verdict = min(max(len(row[1]) for row in rows) + 1, max(room - 12, room // 2))
    name = min(max(8, *(len(row[0]) + 1 for row in rows)), room - verdict)
    head = fitted("engine", name) + fitted("verdict", verdict)
    out = [Text("  ").append(head + "".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True)), "dim")]
    for engine, headline, numbers, style in rows:
        line = Text("  ").append(_short(engine, name - 1) + " ").append(fitted(headline, verdict - 1) + " ", style)
        out.append(line.append("".join(f"{text:>{width}}" for text, width in zip(numbers, widths, strict=True))))
    return out + _rest(diagnoses, len(listed), look) + _hot(diagnoses, many, look)


def _rest(diagnoses: Sequence[Diagnosis], listed: int, look: Look) -> list[Text]:
    """Those that the table has no room for, by verdict."""
    left = worst_first(diagnoses)[listed:]
    if not left:
        return []
    counts = Counter(short_headline(one) for one in left)
    text = ", ".join(f"{number:,} {headline}" for headline, number in counts.most_common())
    return wrapped(f"{len(left):,} more: {text}.", look.width, Text("  ", "dim"))


def short_headline(diagnosis: Diagnosis) -> str:
    """The headline without its explanation and without L2."""
    return diagnosis.verdict.headline.split(":")[0].split(",")[0]


def _short(name: str, width: int) -> str:
    """A name's end tells more than its beginning: port and rank."""
    return fitted(name, width) if len(name) <= width else "…" + fitted(name[-(width - 1) :], width - 1)


def _name(diagnosis: Diagnosis, many: frozenset[str]) -> str:
    engine = diagnosis.engine
    return f"{engine.target} rank {engine.rank}" if engine.target in many else engine.target


def _numbers(diagnosis: Diagnosis, ages: Ages | None) -> tuple[str, ...]:
    """Closed share and its trend, waiting, used, TTFT, age; a dash where unknown."""
    closed, waiting = words.closed(diagnosis), words.signal(diagnosis, "waiting_last_requests")
    used, engine = words.used_part(diagnosis), diagnosis.engine
    age = (ages or {}).get((engine.target, engine.rank))
    return (
        "-" if closed is None else percent(closed) + ARROWS.get(diagnosis.verdict.trend, "  "),
        "-" if waiting is None else count(waiting),
        "-" if used is None else percent(used[1]),
        words.ttft_p99(diagnosis, short=True) or "-",
        "-" if age is None else duration(max(1.0, round(age))),
    )


def silent(diagnoses: Sequence[Diagnosis], look: Look) -> list[Text]:
    """Why those who give no answer give none, a sentence each that names the target."""
    out = []
    for one in diagnoses:
        if urgency(one) in SILENT:
            said = one.verdict.because[0] if one.verdict.because else one.verdict.headline
            named = said if said.startswith(one.engine.target) else f"{one.engine.target}: {said}"
            out += wrapped(named, look.width, Text("  ").append("Silent  ", URGENCY[urgency(one)]))
    return out


HOT = 3
"""Hot ranks that are named."""


def _hot(diagnoses: Sequence[Diagnosis], many: frozenset[str], look: Look) -> list[Text]:
    """Per model with hot ranks: the spread, the hottest and the coldest, and whether there is room elsewhere."""
    models: dict[str, list[Diagnosis]] = {}
    for one in diagnoses:
        models.setdefault(one.engine.model or one.engine.target, []).append(one)
    out = []
    for model, ranks in models.items():
        hot = [one for one in ranks if any(finding.code == "imbalance" for finding in one.findings)]
        if hot:
            text = f"{model}, {len(ranks)} ranks: {_spread(ranks, hot, many)}"
            out += wrapped(text, look.width, Text("  ").append("Hot  ", "bold yellow"))
    return out


def _spread(ranks: Sequence[Diagnosis], hot: Sequence[Diagnosis], many: frozenset[str]) -> str:
    used = [(value, one) for one in ranks if (value := words.signal(one, "l1_used_ratio_mean")) is not None]
    named = ", ".join(_name(one, many) for one in hot[:HOT]) + (f" and {len(hot) - HOT} more" if len(hot) > HOT else "")
    if len(used) < 2:
        return f"{named} runs more than its share."
    (low, coldest), (high, hottest) = min(used, key=_first), max(used, key=_first)
    together, free = (words.signal(hot[0], name) for name in ("model_used_ratio", "model_free_tokens"))
    ends = f"{percent(low)} of the pool held at {_name(coldest, many)}, {percent(high)} at {_name(hottest, many)}"
    room = "" if together is None else f"; together {percent(together)}"
    room += "" if free is None else f", {count(free)} tokens free"
    return f"{ends}{room}. Hot: {named}."


def _first(item: tuple[float, Diagnosis]) -> float:
    return item[0]
