"""What panels show values as: texts and colours from the rule files, so that they are the same words everywhere."""

from __future__ import annotations

from collections import Counter
from functools import cache

from grafana_foundation_sdk.models.dashboard import (
    RangeMap,
    SpecialValueMap,
    SpecialValueMatch,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)

from diagnoser.data import data_dir
from diagnoser.model import L2State
from diagnoser.promql.export import RUNBOOKS
from diagnoser.rulebook.load import load
from diagnoser.rulebook.rules import Rulebook
from diagnoser.service.api.models import BOTTLENECKS

DOCS = RUNBOOKS
RED, ORANGE, YELLOW, GREEN, BLUE, PURPLE, GREY = "red", "orange", "yellow", "green", "blue", "purple", "#8e8e8e"
COLOURS = {
    "none": GREEN, "l1": RED, "slots": ORANGE, "prefill": YELLOW, "external": PURPLE, "l2_transfer": BLUE,
    "stalled": "dark-red", "leak": "dark-purple", "unknown": GREY, "unreachable": "#4a4a4a",
}  # fmt: skip
GATES = {
    "unexplained": GREY,
    **{name: COLOURS[name] for name in ("l1", "slots", "prefill", "external", "l2_transfer", "stalled")},
}
SEVERITIES = {"info": GREEN, "warning": ORANGE, "critical": RED}
L2 = {
    L2State.ABSENT: GREY, L2State.GOVERNS_ADMISSION: RED, L2State.IDLE_SPACE: GREEN, L2State.IDLE_TRAFFIC: GREEN,
    L2State.FULL_NORMAL: BLUE, L2State.TOO_SMALL: ORANGE, L2State.SLOW: ORANGE, L2State.BROKEN: RED,
    L2State.UNKNOWN: GREY,
}  # fmt: skip
L2_COLOURS = {state.value: colour for state, colour in L2.items()}
L2_NAMES = {state.value: state.value.replace("_", " ") for state in L2}
CODES = {name: float(code) for code, name in enumerate(BOTTLENECKS)}
"""A number for every bottleneck: a state timeline of Prometheus' series needs one."""
L2_CODES = {state.value: float(code) for code, state in enumerate(L2State, start=100)}
"""The same of L2 states; other numbers, so that both fit into one panel."""
ANSWERS = {"1": ("yes", RED), "0": ("no", GREEN), "-1": ("unknown", GREY)}
SIGNS = {"1": ("yes", ORANGE), "0": ("no", GREY), "-1": ("unknown", GREY)}
"""Answers to questions where yes is a sign, and not always a bad one."""
URGENCY = ((0, "none", GREEN), (1, "unknown", GREY), (2, "warning", ORANGE), (3, "unreachable", "#4a4a4a"))


@cache
def book() -> Rulebook:
    """The shipped rules."""
    return load([data_dir("rules")])


def texts(shown: dict[str, tuple[str, str | None]]) -> list[ValueMapping]:
    """Value -> text and colour."""
    results = {
        value: ValueMappingResult(text=text, color=colour, index=index)
        for index, (value, (text, colour)) in enumerate(shown.items())
    }
    return [ValueMap(options=results)]


def bottlenecks() -> list[ValueMapping]:
    """Of both: the numbers of CODES, and the names."""
    both = {name: (name, COLOURS[name]) for name in BOTTLENECKS}
    return texts({**both, **{f"{CODES[name]:g}": both[name] for name in BOTTLENECKS}})


def l2_states() -> list[ValueMapping]:
    """Of both: the numbers of L2_CODES, and the names."""
    both = {name: (shown, L2_COLOURS[name]) for name, shown in L2_NAMES.items()}
    return texts({**both, **{f"{L2_CODES[name]:g}": shown for name, shown in both.items()}})


def answers(shown: dict[str, tuple[str, str]] = ANSWERS) -> list[ValueMapping]:
    """Of checks: yes, no, unknown."""
    return texts({value: (text, colour) for value, (text, colour) in shown.items()})


def checks() -> list[ValueMapping]:
    """The label of a check instead of its id; with the id's words where two checks have the same label."""
    labels = Counter(check.label for check in book().checks)
    shown: dict[str, tuple[str, str | None]] = {}
    for check in book().checks:
        words = check.id.replace("_", " ")
        same = labels[check.label] == 1 or words == check.label.lower()
        shown[check.id] = (check.label if same else f"{check.label}: {words.removeprefix('l2 ')}", None)
    return texts(shown)


def blocked() -> tuple[tuple[float | None, str], ...]:
    """Thresholds of a part of the window in which somebody had to wait."""
    return ((None, GREEN), (book().number("gate_share_min"), ORANGE), (book().number("share_critical"), RED))


def nothing(text: str) -> ValueMapping:
    """No value at all, in grey: without it, it has the colour of the lowest threshold, green."""
    found = SpecialValueMap()
    found.options.match = SpecialValueMatch.NULL_AND_NAN
    found.options.result = ValueMappingResult(text=text, color=GREY, index=99)
    return found


def severities() -> list[ValueMapping]:
    """Colours only."""
    return texts({name: (name, colour) for name, colour in SEVERITIES.items()})


def urgencies() -> list[ValueMapping]:
    """Of urgency plus the blocked part of the window, which is below 1."""
    made: list[ValueMapping] = []
    for index, (value, text, colour) in enumerate((*URGENCY, (4, "critical", RED))):
        found = RangeMap()
        found.options.from_val, found.options.to = float(value), value + 0.999
        found.options.result = ValueMappingResult(text=text, color=colour, index=index)
        made.append(found)
    return made
