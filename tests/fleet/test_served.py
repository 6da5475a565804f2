"""A small fleet in both real servers: the same engines, the causes of the truth file, a folder that serves again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import httpx
import pytest
from prometheus.conftest import ask, bare
from story import BOOK

from bench.fleet import Fleet, Settings, kept_fleet, served_fleet
from bench.fleet.members import members
from diagnoser.pipeline import diagnose

from .recordings_into import COMMON_END, is_read, names, recordings_into

ENGINES = 30


def asked(url: str, query: str, at: float) -> float:
    answer = httpx.post(f"{url}/api/v1/query", data={"query": query, "time": str(at)}, timeout=30, trust_env=False)
    return float(answer.json()["data"]["result"][0]["value"][1])


def test_members_are_as_bound_and_as_mixed_as_asked() -> None:
    found = [member.truth for member in members(Settings(engines=400))]
    assert sum(row["bound"] for row in found) == 20
    assert len({row["instance"] for row in found}) == 400
    assert Counter(row["family"] for row in found).keys() == {"vllm", "sglang"}
    assert len({row["version"] for row in found}) > 8 and len({row["model_name"] for row in found}) > 6
    assert found == [member.truth for member in members(Settings(engines=400))]
    assert found != [member.truth for member in members(Settings(engines=400, seed=2))]


def verdicts(fleet: Fleet) -> dict[tuple[str, str], str]:
    found = diagnose(ask(fleet.url, fleet.end, window=300.0).served.windows, BOOK)
    return {(one.engine.target, one.engine.rank): one.verdict.bottleneck for one in found}


def test_both_servers_hold_the_same_fleet_and_its_truth() -> None:
    seen = []
    for kind in ("prometheus", "victoriametrics"):
        with served_fleet(kind, engines=ENGINES, bound=0.4) as fleet:
            assert asked(fleet.url, 'count({__name__=~".+"})', fleet.end) == fleet.about["series"]
            assert asked(fleet.url, "sum(count_over_time(up[6m]))", fleet.end) == 24 * ENGINES
            assert asked(fleet.url, "min(timestamp(up))", fleet.end) > fleet.end - 16
            seen.append(verdicts(fleet))
            truth = fleet.truth
    assert seen[0] == seen[1]
    assert {target for target, _ in seen[0]} == truth.keys() and len(truth) == ENGINES
    current = {target: row["cause"] for target, row in truth.items() if row["version"] in ("0.32.0", "0.5.23")}
    assert len(set(current.values())) > 1
    assert {target: found for (target, _), found in seen[0].items() if target in current} == current


def test_a_kept_folder_serves_again_and_is_never_another_fleet(tmp_path: Path) -> None:
    keep = tmp_path / "fleet"
    with served_fleet("prometheus", keep=keep, engines=3) as fleet:
        about = fleet.about
    with kept_fleet(keep) as fleet:
        assert fleet.about == about and fleet.server.memory("idle")["idle_mb"] > 1
        assert asked(fleet.url, "count(up)", fleet.end) == 3
    with pytest.raises(ValueError, match="another fleet"), served_fleet("prometheus", keep=keep, engines=4):
        raise AssertionError("served")
    (keep / "fleet.json").unlink()
    with pytest.raises(ValueError, match="neither empty nor"), served_fleet("prometheus", keep=keep, engines=3):
        raise AssertionError("served")


@pytest.mark.parametrize("kind", ["prometheus", "victoria"])
def test_all_recordings_in_one_server(tmp_path: Path, kind: str) -> None:
    with recordings_into(kind, tmp_path, every=15, end=COMMON_END) as loaded:
        assert asked(loaded.url, "count(up)", COMMON_END) == len(names()) == len(loaded.stored)
        name = "vllm-0.32.0--c-l1-preempt"
        first = next(iter(bare(name).pages()))
        read = [line for line in (first.text or "").splitlines() if is_read(line.rpartition(" ")[0])]
        known = asked(loaded.url, f'count(last_over_time({{__name__=~".+",instance="{name}"}}[5m]))', COMMON_END)
        assert known == len(read) + 1
        assert max(one.recorded.times[-1] + one.shift for one in loaded.stored.values()) == COMMON_END
