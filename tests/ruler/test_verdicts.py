"""The rules in Prometheus' own engine and in vmalert, on recordings of real engines, judged by the engines' truth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from score.scoring import expected, truth_of
from story import BOOK

from diagnoser.promql.export import ALERTS, RECORDING, Export, files

from .as_promtool import Fleet, evaluate
from .as_vmalert import Replayed, holding

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


MADE = files(BOOK, Export(WINDOW, EVERY))
VERDICT = f"rank:diagnoser_verdict:{WINDOW}s"
Verdicts = dict[int, list[dict[str, str]]]
"""Labels of the recorded verdicts, by page."""


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """Recordings side by side."""
    return Fleet.of(NAMES, EVERY)


@pytest.fixture(scope="module")
def pages(fleet: Fleet) -> range:
    """Every page after the first window."""
    return range(WINDOW // EVERY + 2, max(len(target) for target in fleet.targets.values()))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory, fleet: Fleet, pages: range) -> Verdicts:
    """What Prometheus' engine records."""
    return evaluate(tmp_path_factory.mktemp("rules"), MADE[RECORDING], fleet, VERDICT, pages)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory, fleet: Fleet, pages: range) -> Iterator[Replayed]:
    """A VictoriaMetrics in which vmalert has replayed the rules, and alerts that fire after ten seconds."""
    with holding(tmp_path_factory.mktemp("vmalert"), fleet) as held:
        alerts = re.sub(r"(?m)^( +)for: \w+$", r"\1for: 10s", MADE[ALERTS])
        held.replay([MADE[RECORDING], alerts], range(pages.stop))
        yield held


@pytest.fixture(scope="module")
def vmalert(replayed: Replayed, pages: range) -> Verdicts:
    """What vmalert records."""
    found = replayed.stored(VERDICT)
    return {page: found[page] for page in pages}


@pytest.fixture(params=["prometheus", "vmalert"])
def seen(request: pytest.FixtureRequest) -> Verdicts:
    """Of either."""
    found: Verdicts = request.getfixturevalue(request.param)
    return found


def test_the_rules_are_right(fleet: Fleet, seen: Verdicts) -> None:
    """Rules look back from every instant, the command at a window as a whole: a cause shows up to a step later."""
    judged, wrong = 0, Counter[tuple[str, str, str]]()
    for name, target in fleet.targets.items():
        truth, polls = truth_of(fleet.path(name)), [(page.at, page.text is not None) for page in target.pages()]
        for number, verdicts in seen.items():
            for rank, rows in truth.items() if number < len(polls) else ():
                want = expected(polls[number][0], WINDOW, rows, polls)
                got = [v["bottleneck"] for v in verdicts if v["instance"] == name and v["rank"] == rank]
                judged += want is not None
                if want is not None and not (len(got) == 1 and got[0] in want):
                    wrong[(name, "|".join(sorted(want)), "|".join(got))] += 1
    assert judged >= 70
    assert sum(wrong.values()) / judged <= 0.04, wrong


def test_one_verdict_a_rank_with_all_labels(seen: Verdicts) -> None:
    assert seen
    for verdicts in seen.values():
        ranks = Counter((v["job"], v["instance"], v["model"], v["rank"]) for v in verdicts)
        assert ranks and set(ranks.values()) == {1}
        assert all({"bottleneck", "rule", "severity", "confidence", "family"} <= set(v) for v in verdicts)


def test_vmalert_says_what_prometheus_says(fleet: Fleet, prometheus: Verdicts, vmalert: Verdicts) -> None:
    """While an engine was recorded. Growth is counted from another page, so that a change may show a step apart."""
    both = [
        {
            (v["instance"], v["rank"], page): (v["bottleneck"], v.get("mode", ""))
            for page, verdicts in found.items()
            for v in verdicts
            if page < len(fleet.targets[v["instance"]])
        }
        for found in (prometheus, vmalert)
    ]
    assert set(both[0]) == set(both[1]) and len(both[0]) >= 70
    differ = {key: (one, both[1][key]) for key, one in both[0].items() if one != both[1][key]}
    assert len(differ) <= 0.04 * len(both[0]), differ


def test_vmalert_fires_the_alerts_of_the_bound(replayed: Replayed, pages: range) -> None:
    fired = replayed.stored('ALERTS{alertstate="firing",alertname=~"Engine(L1|Slots).*"}')
    who = {(one["instance"], one["alertname"]) for page in pages for one in fired[page]}
    assert ("vllm-0.32.0--c-l1-preempt", "EngineL1Preempting") in who
    assert ("vllm-0.32.0--e-max-num-seqs", "EngineSlots") in who
    assert not {one for one in who if one[0].endswith(("b-healthy", "o-busy-not-bound"))}
