"""What panels show values as: texts and colours from the rule files, so that they are the same words everywhere."""

from __future__ import annotations

from functools import cache

from grafana_foundation_sdk.models.dashboard import RangeMap, ValueMap, ValueMapping, ValueMappingResult

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
GATES = {"unexplained": GREY, **{name: COLOURS[name] for name in COLOURS if name not in ("none", "leak")}}
SEVERITIES = {"info": GREEN, "warning": ORANGE, "critical": RED}
L2 = {
    L2State.ABSENT: GREY, L2State.GOVERNS_ADMISSION: RED, L2State.IDLE_SPACE: GREEN, L2State.IDLE_TRAFFIC: GREEN,
    L2State.FULL_NORMAL: BLUE, L2State.TOO_SMALL: ORANGE, L2State.SLOW: ORANGE, L2State.BROKEN: RED,
    L2State.UNKNOWN: GREY,
}  # fmt: skip
CODES = {name: float(code) for code, name in enumerate(BOTTLENECKS)}
"""A number for every bottleneck: a state timeline of Prometheus' series needs one."""
L2_CODES = {state.value: float(code) for code, state in enumerate(L2State, start=100)}
"""The same of L2 states; other numbers, so that both fit into one panel."""
ANSWERS = {"1": ("yes", RED), "0": ("no", GREEN), "-1": ("unknown", GREY)}
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
    both = {state.value: (state.value.replace("_", " "), colour) for state, colour in L2.items()}
    return texts({**both, **{f"{L2_CODES[name]:g}": shown for name, shown in both.items()}})


def answers() -> list[ValueMapping]:
    """Of checks: yes, no, unknown."""
    return texts({value: (text, colour) for value, (text, colour) in ANSWERS.items()})


def checks() -> list[ValueMapping]:
    """The label of a check instead of its id."""
    return texts({check.id: (check.label, None) for check in book().checks})


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
