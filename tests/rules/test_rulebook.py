"""Rule files: the shipped ones are whole; a bad one is named with its line and skipped; a second folder overrides."""

from __future__ import annotations

from pathlib import Path

import pytest
from story import BOOK, play, pool, vllm

from diagnoser import pipeline
from diagnoser.data import data_dir
from diagnoser.engines import adapters
from diagnoser.model import Answer
from diagnoser.rulebook.conditions import Compare, leaves
from diagnoser.rulebook.load import load
from diagnoser.rulebook.rules import Rulebook
from diagnoser.rulebook.text import fill

LOOK_ALIKES = {
    "slot_limit",
    "prefill_saturated",
    "evictable_mistaken",
    "l2_copy_slow",
    "l2_loads_hold_l1",
    "grammar_or_lora_wait",
    "pd_wait",
    "hot_rank",
    "stalled_engine",
    "kv_leak",
    "frontend_slow",
    "engine_paused",
    "decode_slow",
    "traffic_mix",
    "data_stale",
}
GOOD = """
id: mine
label: mine
kind: checklist
question: Is it?
yes: {signal: waiting_max_requests, op: ">", value: 0}
text: {yes: "up to {waiting_max_requests:count}", no: "no", unknown: "?"}
rationale: a test
source: a test
unknown: never
"""


def overlay(folder: Path, **files: str) -> Rulebook:
    (folder / "checks").mkdir(exist_ok=True)
    for name, content in files.items():
        path = (
            folder / f"{name}.yaml"
            if name in ("thresholds", "gates", "verdicts")
            else folder / "checks" / f"{name}.yaml"
        )
        path.write_text(content)
    return load([data_dir("rules"), folder])


def test_the_shipped_rules_are_whole() -> None:
    assert pipeline.rule_problems(BOOK) == ()


def test_every_look_alike_of_the_theory_is_asked() -> None:
    assert {check.id for check in BOOK.checks} >= LOOK_ALIKES
    assert {c.id for c in BOOK.checks if c.id in LOOK_ALIKES and c.kind != "look-alike"} == set()


def test_every_threshold_has_one_value_and_a_reason() -> None:
    assert all(len(t.reason) > 20 and t.unit for t in BOOK.thresholds.values())
    numbers = [leaf for c in BOOK.checks for leaf in leaves(c.yes) if isinstance(leaf, Compare) and not leaf.threshold]
    assert all(leaf.value in (0.0, 1.0) for leaf in numbers)


def test_every_verdict_but_healthy_has_something_to_do() -> None:
    acted = [
        r
        for r in BOOK.verdicts
        if r.bottleneck in ("l1", "slots", "prefill", "external", "l2_transfer", "stalled", "leak")
    ]
    assert all(rule.remedies for rule in acted)
    families = {a.family for a in adapters()}
    for rule in acted:
        flags = [BOOK.remedies[name].flags for name in rule.remedies]
        served = {f for f in families if any(f in flag or "any" in flag for flag in flags)}
        assert served >= ({"sglang"} if rule.mode == "reservation" else families)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("mine", "id: [", "not valid YAML"),
        ("mine", "id: other\n", "must be the file's name"),
        ("mine", GOOD.replace("kind: checklist", "kind: wish"), "must be one of"),
        ("mine", GOOD.replace("value: 0", "value: 7"), "threshold: NAME"),
        ("mine", GOOD.replace("value: 0", "threshold: nowhere"), "not in thresholds.yaml"),
        ("mine", GOOD + "colour: red\n", "unknown key `colour`"),
        ("mine", GOOD + "label: twice\n", "given twice"),
        ("mine", GOOD.replace('op: ">"', 'op: "~"'), "must be one of"),
        ("mine", "- a list\n", "must be a mapping"),
        ("thresholds", "gate_share_min: {value: often}\n", "a number"),
        ("gates", "gates: 3\n", "a list"),
        ("verdicts", "verdicts:\n  - id: x\n", "needs"),
    ],
)
def test_a_bad_file_is_named_and_the_rest_goes_on(tmp_path: Path, name: str, content: str, said: str) -> None:
    book = overlay(tmp_path, **{name: content})
    assert len(book.errors) == 1
    error = book.errors[0]
    assert said in str(error) and str(tmp_path) in str(error)
    assert {c.id for c in book.checks} >= LOOK_ALIKES
    assert book.gates == BOOK.gates and book.verdicts == BOOK.verdicts
    assert book.thresholds["gate_share_min"].value == 0.2


def test_the_line_is_told(tmp_path: Path) -> None:
    book = overlay(tmp_path, mine=GOOD.replace('op: ">"', 'op: "~"'))
    assert book.errors[0].line == 6


def test_a_second_folder_overrides_adds_and_disables(tmp_path: Path) -> None:
    book = overlay(
        tmp_path, mine=GOOD, thrashing="id: thrashing\ndisabled: true\n", thresholds="gate_share_min: {value: 0.9}\n"
    )
    assert book.errors == ()
    assert book.thresholds["gate_share_min"].value == 0.9
    assert book.thresholds["gate_share_min"].reason == BOOK.thresholds["gate_share_min"].reason
    assert book.check("mine") is not None and book.check("thrashing") is None
    queueing = book.check("queueing")
    assert queueing is not None and {leaf.value for leaf in leaves(queueing.yes) if isinstance(leaf, Compare)} == {0.9}


def test_names_that_do_not_exist_are_found(tmp_path: Path) -> None:
    book = overlay(tmp_path, mine=GOOD.replace("waiting_max_requests", "nothing_at_all"))
    said = " ".join(map(str, pipeline.rule_problems(book)))
    assert "no signal 'nothing_at_all'" in said and "{nothing_at_all}" in said


def test_a_text_takes_the_alternative_whose_numbers_are_known() -> None:
    found = play([vllm(running=1, waiting=0, usage=0.5, prompt=10, generated=10) | pool(100)] * 2, every=1)[0]
    assert fill("{l1_used_ratio_mean:percent} held || nothing known", found.signals) == ("50 % held", True)
    assert fill("{ttft_mean_seconds:seconds} || {l1_used_ratio_mean:percent}", found.signals) == ("50 %", True)
    assert fill("{ttft_mean_seconds:seconds}", found.signals) == ("?", False)


def test_every_check_is_answered_on_every_window() -> None:
    for polls in (
        [],
        [vllm(running=0, waiting=0)],
        ["refused"] * 4,
        [vllm(running=1, waiting=0, usage=float("nan"))] * 3,
    ):
        for found in play(polls or ["nothing yet"], every=1):
            assert {c.id for c in found.checks} == {c.id for c in BOOK.checks}
            assert all(c.answer in Answer and c.reason for c in found.checks)
