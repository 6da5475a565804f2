"""A host tier's page at another address: joined to its engines, never part of the engine's verdict."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from story import BOOK

from diagnoser.cli import main
from diagnoser.errors import UsageError
from diagnoser.l2pages import L2Page, assign, host_of, read_l2, split_spec
from diagnoser.model import Diagnosis, L2State, Scrape, Target
from diagnoser.pipeline import wanted_metrics
from diagnoser.replay import instant, span
from diagnoser.sources.exposition import PageParser
from diagnoser.sources.recording import open_recording

DATA = Path(__file__).parents[1] / "data" / "l2"
ENGINE = DATA / "vllm-0.32.0.tar.xz"
PAIRS = {
    "l2-lmcache-inproc-0.5.6-idle": {"idle_traffic"},
    "l2-lmcache-inproc-0.5.6-full": {"too_small", "full_normal"},
    "l2-lmcache-mp-0.5.6-idle": {"idle_space"},
    "l2-lmcache-mp-0.5.6-full": {"too_small", "full_normal"},
    "l2-lmcache-mp-0.5.6-full-openmetrics": {"too_small", "full_normal"},
}


def folder(root: Path, **targets: Path) -> Path:
    """A recording with one sub-folder a target."""
    for name, archive in targets.items():
        (root / name).mkdir(parents=True)
        with tarfile.open(archive) as content:
            content.extractall(root / name, filter="data")
    return root


def at_end(path: Path, *beside: tuple[str, Path]) -> tuple[Diagnosis, ...]:
    recording = open_recording(path)
    others = [(only, open_recording(other)) for only, other in beside]
    return instant(recording, BOOK, {}, 50.0, span(recording)[1], others)


@pytest.mark.parametrize("name", PAIRS)
def test_a_sub_folder_with_l2_only_joins_the_engine(name: str, tmp_path: Path) -> None:
    (alone,) = at_end(ENGINE)
    (found,) = at_end(folder(tmp_path, engine=ENGINE, cache=DATA / f"{name}.tar.xz"))
    assert found.engine.target == "engine"
    assert found.verdict.l2 in PAIRS[name]
    assert found.l2 is not None
    assert found.l2.backend.startswith("lmcache")
    same = (found.verdict.bottleneck, found.verdict.mode, found.verdict.severity, found.verdict.shares)
    assert same == (alone.verdict.bottleneck, alone.verdict.mode, alone.verdict.severity, alone.verdict.shares)
    assert same[:2] == ("l1", "preempting")


def test_a_recording_beside_is_joined_by_time() -> None:
    (found,) = at_end(ENGINE, ("", DATA / "l2-lmcache-mp-0.5.6-idle.tar.xz"))
    assert found.verdict.l2 is L2State.IDLE_SPACE
    assert found.verdict.headline == "L1-BOUND (preempting), L2 idle"
    assert any("larger L2" in text for text in found.not_remedies)


def test_replay_l2(capsys: pytest.CaptureFixture[str]) -> None:
    beside = str(DATA / "l2-lmcache-mp-0.5.6-idle.tar.xz")
    main(["replay", str(ENGINE), "--l2", beside, "--last", "--window", "50s", "--format", "json"])
    (found,) = json.loads(capsys.readouterr().out)["diagnoses"]
    assert found["verdict"]["l2"] == "idle_space"
    assert found["would_more_l2_help"]["answer"] == "no"
    assert found["l2"]["scope"] == "node"


def test_an_address_that_does_not_answer_makes_only_l2_unknown(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    root = folder(tmp_path, engine=ENGINE)
    for page in (root / "engine").glob("*.prom"):
        (root / "cache" / page.name).with_suffix(".error").write_text("connection refused.\n")
    dead = open_recording(root / "cache")
    recording = open_recording(ENGINE)
    (found,) = instant(recording, BOOK, {}, 50.0, span(recording)[1], [("", dead)])
    (alone,) = at_end(ENGINE)
    assert found.verdict.l2 is L2State.UNKNOWN
    assert "connection refused" in found.verdict.l2_reason
    assert alone.verdict.l2 is L2State.ABSENT
    assert (found.verdict.bottleneck, found.verdict.shares) == (alone.verdict.bottleneck, alone.verdict.shares)


def test_every_engine_of_a_recording_gets_a_shared_tier(tmp_path: Path) -> None:
    pair = folder(tmp_path, a=ENGINE, b=ENGINE, cache=DATA / "l2-lmcache-inproc-0.5.6-full.tar.xz")
    found = at_end(pair)
    assert [one.engine.target for one in found] == ["a", "b"]
    assert all(one.l2 is not None and one.l2.scope == "node" for one in found)


def test_a_recording_of_l2_only_is_diagnosed_as_no_engine() -> None:
    (found,) = at_end(DATA / "l2-lmcache-mp-0.5.6-idle.tar.xz")
    assert found.verdict.bottleneck == "unreachable"


def test_hisparse_switches_off_that_only_l1_bounds(tmp_path: Path) -> None:
    root = folder(tmp_path, engine=ENGINE)
    for page in (root / "engine").glob("*.prom"):
        text = page.read_text().rstrip("\n")
        page.write_text(f'{text}\nvllm:hisparse_host_cache_usage_perc{{engine="0"}} 0.97\n')
    (found,) = at_end(root / "engine")
    assert found.verdict.bottleneck == "l1"
    assert found.verdict.l2 is L2State.GOVERNS_ADMISSION
    assert "HiSparse" in found.verdict.headline
    assert any("bounds admission" in sentence for sentence in found.verdict.because)
    assert not any("L2" in text for text in found.not_remedies)
    assert found.more_l2 is not None
    assert found.more_l2.answer == "yes"


# ---------------------------------------------------------------- who is served


def test_pages_serve_the_engines_on_their_host_else_all() -> None:
    engines = ["10.0.0.1:8000", "10.0.0.1:8001", "10.0.0.2:8000"]
    near, far, one = (L2Page(name, 30) for name in ("10.0.0.1:9000", "10.0.0.9:9003", "10.0.0.9:7000"))
    served = assign(engines, [("", near), ("", far), ("10.0.0.2:8000", one)], host_of)
    assert served == {engines[0]: [near, far], engines[1]: [near, far], engines[2]: [far, one]}
    assert (near.shared, far.shared, one.shared) == (True, True, False)
    with pytest.raises(UsageError, match="there is no engine"):
        assign(engines, [("10.0.0.3:8000", one)], host_of)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("host:9000", ("", "host:9000")),
        ("http://host:9000/metrics?a=b", ("", "http://host:9000/metrics?a=b")),
        ("host:8000=http://host:9000/metrics", ("host:8000", "http://host:9000/metrics")),
    ],
)
def test_spec(spec: str, expected: tuple[str, str]) -> None:
    assert split_spec(spec) == expected


def test_host_of() -> None:
    assert [host_of(name) for name in ("a:1", "a:1/x/y", "[::1]:8000", "alone")] == ["a", "a", "[::1]", "alone"]


def test_a_page_without_a_tier_is_refused() -> None:
    parse = PageParser(wanted_metrics()).parse
    bare = read_l2(Target("x"), 0.0, "master_allocated_bytes 5\nmaster_total_capacity_bytes 10\n", parse)
    assert bare.error is None
    wrong = read_l2(Target("x"), 0.0, 'node_load1{a="b"} 5\n', parse)
    assert "no metric of a known host tier" in (wrong.error or "")


def test_one_lost_poll_is_a_hiccup() -> None:
    parse = PageParser(wanted_metrics()).parse
    page = L2Page("x", 30)
    page.add(read_l2(Target("x"), 100.0, "master_allocated_bytes 5\nmaster_total_capacity_bytes 10\n", parse))
    page.add(Scrape(Target("x"), 101.0, error="lost"))
    (engine,) = at_end(ENGINE)
    from diagnoser.model import PoolState, Snapshot

    def state(at: float) -> bool | None:
        return page.state(Snapshot(engine.engine, at, {}, {}, {}, PoolState()), {}).presence

    assert [state(100.0), state(101.0), state(117.0)] == [True, True, None]
