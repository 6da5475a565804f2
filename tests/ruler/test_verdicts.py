"""The recording rules in Prometheus' own engine, on recordings of real engines, judged by the engines' truth."""

from __future__ import annotations

from collections import Counter

import pytest
from score.scoring import expected, truth_of
from story import BOOK

from diagnoser.promql.export import RECORDING, Export, files

from .as_promtool import Fleet, evaluate

EVERY, WINDOW = 5, 40
NAMES = (
    "sglang-0.5.23--b-healthy",
    "sglang-0.5.23--c-l1-retract",
    "sglang-0.5.23--d-reservation",
    "sglang-0.5.23--e-max-running",
    "sglang-0.5.23--f-prefill-compute",
    "sglang-0.5.23--j1-hicache-l1-bound-l2-idle",
    "sglang-0.5.23--l-dp2",
    "vllm-0.32.0--c-l1-preempt",
    "vllm-0.32.0--d-l1-admission",
    "vllm-0.32.0--e-max-num-seqs",
    "vllm-0.32.0--f-token-budget",
    "vllm-0.32.0--h11-grammar",
    "vllm-0.32.0--i-killed",
    "vllm-0.32.0--m-dp2",
    "vllm-0.32.0--o-busy-not-bound",
    "vllm-0.32.0--q-engine-hung",
    "vllm-0.32.0--w-l1-low-usage",
)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, dict[int, list[dict[str, str]]]]:
    """The recorded verdicts of every page after the first window."""
    fleet = Fleet.of(NAMES, EVERY)
    rules = files(BOOK, Export(WINDOW, EVERY))[RECORDING]
    longest = max(len(target) for target in fleet.targets.values())
    pages = range(WINDOW // EVERY + 2, longest)
    folder = tmp_path_factory.mktemp("rules")
    return fleet, evaluate(folder, rules, fleet, f"rank:diagnoser_verdict:{WINDOW}s", pages)


def test_the_rules_are_right(seen: tuple[Fleet, dict[int, list[dict[str, str]]]]) -> None:
    """Rules look back from every instant, the command at a window as a whole: a cause shows up to a step later."""
    fleet, found = seen
    judged, wrong = 0, Counter[tuple[str, str, str]]()
    for name, target in fleet.targets.items():
        truth, polls = truth_of(fleet.path(name)), [(page.at, page.text is not None) for page in target.pages()]
        for number, verdicts in found.items():
            for rank, rows in truth.items() if number < len(polls) else ():
                want = expected(polls[number][0], WINDOW, rows, polls)
                got = [v["bottleneck"] for v in verdicts if v["instance"] == name and v["rank"] == rank]
                judged += want is not None
                if want is not None and not (len(got) == 1 and got[0] in want):
                    wrong[(name, "|".join(sorted(want)), "|".join(got))] += 1
    assert judged >= 70
    assert sum(wrong.values()) / judged <= 0.04, wrong


def test_one_verdict_a_rank_with_all_labels(seen: tuple[Fleet, dict[int, list[dict[str, str]]]]) -> None:
    _, found = seen
    assert found
    for verdicts in found.values():
        ranks = Counter((v["job"], v["instance"], v["model"], v["rank"]) for v in verdicts)
        assert ranks and set(ranks.values()) == {1}
        assert all({"bottleneck", "rule", "severity", "confidence", "family"} <= set(v) for v in verdicts)
