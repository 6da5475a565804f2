"""(c) L1 versus L2: both ledgers side by side, and what the one can do for the other."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.models.dashboard import Dashboard, ValueMapping

from boards import latency, ledgers
from boards.frame import TIERS, Bottlenecks, board, variables
from boards.panels import Panel, finished, number, plain, states
from boards.promql import Query, l2_code, recorded, verdict_code
from boards.words import BLUE, DOCS, GREY, SIGNS, answers, blocked, book, bottlenecks, l2_states, texts

QUESTIONS = {
    "kv_space_closed": "Is KV space the closed gate?", "l2_idle": "Is L2 idle?",
    "l2_too_small": "Was something thrown out of L2 that was asked for again?",
    "l2_could_help": "Does L2 spare prefill now?", "l2_governs_admission": "Does L2 take part in admission?",
    "l2_slow": "Is L2 slow?", "l2_loads_hold_l1": "Do loads from L2 hold L1?",
}  # fmt: skip


def dashboard() -> Dashboard:
    """The whole."""
    words = (
        "Device memory (L1) admits requests; host memory (L2) is a cache that never adds a slot. Both ledgers of one "
        "engine rank."
    )
    target = book().number("ttft_target_seconds")
    left, right = (12, 9), (12, 9)
    panels = [
        *_headline(), ledgers.pool(left), ledgers.resident(right), ledgers.share((12, 7)), ledgers.traffic((12, 7)),
        latency.ttft((12, 8), target), latency.hits((12, 8)), questions(),
    ]  # fmt: skip
    return board(TIERS, words, variables(several=False), [Bottlenecks()], panels)


def _headline() -> Iterator[Panel]:
    def tell(
        title: str, words: str, expr: str, unit: str, mappings: object, steps: object, empty: str = "unknown"
    ) -> Panel:
        made = number([Query(expr, instant=True)], unit, mappings, empty=empty)
        return finished(made, title, words, (4, 4), steps)

    green = ((None, "green"),)
    yield tell(
        "Verdict", f"The closed gate, {DOCS}/verdicts.md.", verdict_code("instance, rank"), "none", bottlenecks(), green
    )
    used = f"max({recorded('l1_used_ratio_last')})"
    words = "Part of the KV pool that requests hold. Nobody need wait at 99 %, everybody may at 40 %."
    yield plain(tell("L1 held", words, used, "percentunit", (), green))
    words = "Part of the window in which KV space kept somebody waiting."
    closed = recorded("share", 'gate="l1"')
    yield tell("Closed by KV space", words, f"max({closed})", "percentunit", (), blocked())
    yield tell("L2", f"State of the host tier, {DOCS}/l2.md.", l2_code("instance, rank"), "none", l2_states(), green)
    words = (
        "Part of L2 that is filled; - where there is none or the engine does not tell it (only SGLang's HiCache does)."
    )
    filled = tell("L2 filled", words, f"max({recorded('l2_resident_ratio')})", "percentunit", (), green, "-")
    yield plain(filled).decimals(1)
    words = "yes: L2 serves prefixes that would be computed again. It never admits anybody, whatever its size."
    helps = recorded("check", 'check="l2_could_help"')
    yield tell("L2 spares prefill", words, f"max({helps})", "none", _helps(), green)


def _helps() -> list[ValueMapping]:
    return texts({"1": ("yes", BLUE), "0": ("no", GREY)})


def questions() -> Panel:
    """What decides whether more L2 would change anything."""
    queries = []
    for check, text in QUESTIONS.items():
        asked = recorded("check", f'check="{check}"')
        queries.append(Query(f"max({asked})", text))
    words = f"The checks that decide. Their pages: {DOCS}/checks/README.md. A gap is unknown, not no."
    return finished(states(queries, answers(SIGNS)), "Would more L2 change anything?", words, (24, 9))
