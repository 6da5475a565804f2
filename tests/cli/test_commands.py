"""Every command end to end: real recordings, real HTTP."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from ran import Ran

from .conftest import FAST, HEALTHY, KILLED, PREEMPTING, RESERVATION, SLOW, TWO_RANKS, sends, shell

Diagnose = Callable[..., Ran]


# ---------------------------------------------------------------- live


def test_live_engine(diagnose: Diagnose, engine: Callable[..., str]) -> None:
    address = engine(PREEMPTING, since=20.0)
    ran = diagnose(address, *FAST)
    assert ran.code == 2
    assert address in ran.out.splitlines()[0]
    assert "L1-BOUND" in ran.out.splitlines()[2]
    assert "KV space was the closed gate" in ran.out
    assert "Do, in this order" in ran.out
    assert ran.err == "diagnose: sampling 1 target for 800 ms, a page every 25 ms ...\n"


def test_full_url_and_several_targets(diagnose: Diagnose, engine: Callable[..., str]) -> None:
    bound, fine = engine(RESERVATION, speed=20.0, since=10.0), engine(HEALTHY, speed=20.0)
    ran = diagnose(f"http://{bound}/metrics", fine, *FAST, "--format", "jsonl")
    found = {d["engine"]["target"]: d["verdict"]["bottleneck"] for d in map(json.loads, ran.out.splitlines())}
    assert found == {bound: "l1", fine: "none"}
    assert ran.code == 2


def test_a_dead_target_hides_nobody(diagnose: Diagnose, engine: Callable[..., str]) -> None:
    bound = engine(PREEMPTING, since=20.0)
    ran = diagnose("127.0.0.1:9", bound, *FAST)
    assert ran.code == 2
    table = ran.out.splitlines()
    assert "verdict" in table[0] and "L1-BOUND" in table[1] and "UNREACHABLE" in table[2]
    assert "127.0.0.1:9 refuses the connection" in ran.out


def test_every_rank_has_its_verdict(diagnose: Diagnose, engine: Callable[..., str]) -> None:
    address = engine(TWO_RANKS)
    ran = diagnose(address, *FAST)
    assert f"{address} rank 0" in ran.out and f"{address} rank 1" in ran.out


def test_the_same_target_twice_counts_once(diagnose: Diagnose, engine: Callable[..., str]) -> None:
    address = engine(HEALTHY)
    ran = diagnose(address, f"http://{address}/metrics", *FAST, "--format", "jsonl")
    assert len(ran.out.splitlines()) == 1
    assert ran.code == 0


def test_sampling_ends_early_where_nobody_answers(diagnose: Diagnose) -> None:
    began = time.monotonic()
    ran = diagnose("127.0.0.1:9", "--window", "60s", "--interval", "50ms")
    assert ran.code == 3
    assert time.monotonic() - began < 10
    assert "no target gave a page" in ran.out


ENDS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
"""Ctrl-C, and what `docker stop` sends."""


@ENDS
def test_interrupted_sampling_is_diagnosed(engine: Callable[..., str], number: int) -> None:
    address = engine(PREEMPTING, speed=SLOW, since=30.0)
    argv = [sys.executable, "-m", "diagnoser", address, "--window", "60s", "--interval", "40ms"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "sampling" in process.stderr.readline()
        time.sleep(1.0)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "L1-BOUND" in out
    assert "interrupted after" in out and "of 60 s" in out
    assert err == ""


# ---------------------------------------------------------------- facts


INFO = {
    "/version": b'{"version": "0.32.0"}',
    "/v1/models": b'{"data": [{"id": "big-model", "max_model_len": 4096}]}',
    "/server_info": b'{"vllm_config": {"scheduler_config": {"max_num_seqs": 64}}}',
}
PAGE = b"""vllm:num_requests_running{engine="0",model_name="m"} 1
vllm:num_requests_waiting{engine="0",model_name="m"} 0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:prompt_tokens_total{engine="0",model_name="m"} 10
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",enable_prefix_caching="True",engine="0"} 1
"""


def info_server(asked: list[tuple[str, str]]) -> Callable[..., None]:
    def handle(request) -> None:  # type: ignore[no-untyped-def]
        path = request.path.partition("?")[0]
        asked.append((path, request.headers.get("Authorization", "")))
        sends(PAGE if path == "/metrics" else INFO.get(path, b""))(request)

    return handle


def test_facts_and_their_origins(diagnose: Diagnose, serve: Callable[..., str], tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []
    address = serve(info_server(asked))
    file = tmp_path / "facts.json"
    file.write_text('{"facts": {"max_num_seqs": 32, "watermark": 0.01, "max_num_batched_tokens": 1024, "colour": 1}}')
    ran = diagnose(
        address, *FAST, "--format", "json", "--facts", file, "--fact", "watermark=0.02", "--header", "Authorization: x"
    )
    facts = json.loads(ran.out)["diagnoses"][0]["facts"]
    assert facts["block_size"] == {"value": 16.0, "origin": "label of vllm:cache_config_info"}
    assert facts["max_model_len"] == {"value": 4096.0, "origin": "GET /v1/models"}
    assert facts["max_num_seqs"] == {"value": 32.0, "origin": f"--facts {file}"}
    assert facts["watermark"] == {"value": 0.02, "origin": "--fact"}
    assert f"{file}: not used: colour" in ran.err
    assert {origin for _, origin in asked} == {"x"}
    paths = [path for path, _ in asked if path != "/metrics"]
    assert sorted(paths) == ["/server_info", "/v1/models", "/version"], "once per engine start, this family only"


def test_verbose_shows_signals_and_origins(diagnose: Diagnose) -> None:
    ran = diagnose("replay", PREEMPTING, "--last", "-v", "--fact", "max_num_seqs=64")
    assert "max_num_seqs                   64 (--fact)" in ran.out
    assert "waiting_last_requests" in ran.out and "from vllm:num_requests_waiting" in ran.out
    assert "unknown: " in ran.out


def test_fact_names_are_checked(diagnose: Diagnose) -> None:
    ran = diagnose("replay", PREEMPTING, "--fact", "max_num_sqs=3")
    assert (ran.code, ran.out) == (64, "")
    assert "did you mean max_num_seqs?" in ran.err


@pytest.mark.parametrize("flag", ["max_num_seqs", "max_num_seqs=", "max_num_seqs=-3", "max_num_seqs=many", "x=1"])
def test_facts_that_are_none(diagnose: Diagnose, flag: str) -> None:
    assert diagnose("replay", PREEMPTING, "--fact", flag).code == 64


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "not JSON"), ("[1]", "holds no mapping"), ('{"max_num_seqs": [1]}', "is a structure")],
)
def test_bad_facts_file(diagnose: Diagnose, tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "facts.json"
    file.write_text(content)
    ran = diagnose("replay", HEALTHY, "--facts", file)
    assert (ran.code, ran.out) == (64, "")
    assert words in ran.err and str(file) in ran.err
    assert diagnose("replay", HEALTHY, "--facts", tmp_path / "none.json").code == 64


# ---------------------------------------------------------------- replay


def test_replay_gives_every_instant_and_rank_a_line(diagnose: Diagnose) -> None:
    ran = diagnose("replay", TWO_RANKS, "--window", "30s", "--step", "10s", "--format", "jsonl")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    times = sorted({line["at"] for line in lines})
    assert {round(b - a, 3) for a, b in pairwise(times)} == {10.0}
    assert [line["engine"]["rank"] for line in lines] == ["0", "1"] * len(times)
    assert ran.code == 2


def test_replay_shows_the_worst_window_and_a_timeline(diagnose: Diagnose) -> None:
    ran = diagnose("replay", KILLED)
    assert "UNREACHABLE" in ran.out.splitlines()[2]
    assert "Timeline" in ran.out and "NO BOTTLENECK → " in ran.out
    assert ran.code == 3


def test_replay_of_one_moment(diagnose: Diagnose) -> None:
    first = json.loads(diagnose("replay", KILLED, "--at", "+30s", "--format", "jsonl").out)
    assert first["verdict"]["bottleneck"] == "none"
    again = diagnose("replay", KILLED, "--at", first["at"], "--format", "jsonl")
    assert json.loads(again.out)["verdict"] == first["verdict"]
    assert again.code == 0
    last = diagnose("replay", KILLED, "--last", "--format", "jsonl")
    assert json.loads(last.out)["verdict"]["bottleneck"] == "unreachable"
    assert diagnose("replay", KILLED, "--at", "+1h").code == 64
    assert diagnose("replay", KILLED, "--at", "noon").code == 64


@pytest.mark.parametrize(("recording", "code"), [(HEALTHY, 0), (PREEMPTING, 2), (RESERVATION, 2), (KILLED, 3)])
def test_exit_codes(diagnose: Diagnose, recording: Path, code: int) -> None:
    assert diagnose("replay", recording, "--step", "10s").code == code
    assert diagnose("replay", recording, "--last", "--exit-zero").code == 0


# ---------------------------------------------------------------- record, mock, page, demo, watch


def test_record_then_replay(diagnose: Diagnose, engine: Callable[..., str], tmp_path: Path) -> None:
    address, file = engine(PREEMPTING, since=20.0), tmp_path / "incident.tar.gz"
    ran = diagnose("record", address, "--duration", "750ms", "--interval", "25ms", "-o", file)
    assert ran.code == 0
    assert re.search(r"incident.tar.gz: \d\d pages in [67]\d\d ms\. Diagnose it: diagnose replay", ran.out)
    again = diagnose("replay", file, "--window", "600ms", "--last", "--format", "jsonl")
    assert json.loads(again.out)["verdict"]["bottleneck"] == "l1"
    assert json.loads(again.out)["engine"]["target"] == address
    assert diagnose("record", address, "-o", file).code == 3, "nothing is overwritten"


def test_record_of_two_targets_one_of_them_dead(diagnose: Diagnose, engine: Callable[..., str], tmp_path: Path) -> None:
    ran = diagnose(
        "record", engine(HEALTHY), "127.0.0.1:9", "--duration", "200ms", "--interval", "40ms", "-o", tmp_path / "r"
    )
    assert ran.code == 0
    pages, failed = re.search(r"(\d+) pages in .*, (\d+) polls failed", ran.out).groups()  # type: ignore[union-attr]
    assert len(list((tmp_path / "r").rglob("*.prom"))) == int(pages) > 2
    assert len(list((tmp_path / "r").rglob("*.error"))) == int(failed) > 2
    meta = json.loads(next((tmp_path / "r").rglob("meta.json")).read_text())
    assert set(meta) <= {"engine", "version", "model", "target", "poll_interval_seconds"}
    none = diagnose("record", "127.0.0.1:9", "--duration", "200ms", "--interval", "40ms", "-o", tmp_path / "s")
    assert none.code == 3 and "refuses the connection" in none.err


@ENDS
def test_mock_serves_a_recording(diagnose: Diagnose, number: int) -> None:
    argv = [sys.executable, "-m", "diagnoser", "mock", str(PREEMPTING), "--speed", str(SLOW)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        time.sleep(1.0)
        assert diagnose(url, *FAST).code in (1, 2)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "")


def test_mock_ends_with_the_recording(diagnose: Diagnose) -> None:
    ran = diagnose("mock", HEALTHY, "--speed", 1000)
    assert ran.code == 0 and "/metrics for" in ran.out
    assert diagnose("mock", HEALTHY, "--port", "70000").code == 64


def test_page(diagnose: Diagnose, tmp_path: Path) -> None:
    file = tmp_path / "page.prom"
    file.write_bytes(PAGE)
    ran = diagnose("page", file)
    assert ran.code == 3
    assert "UNKNOWN: one page cannot tell" in ran.out
    assert "used 24 %, evictable + available 76 %" in ran.out, "without the null block"
    assert "block_size                     16 (label of vllm:cache_config_info)" in ran.out
    assert "One page cannot tell" in ran.out and "KV space closed" in ran.out
    assert shell("page", "-", stdin=PAGE).out.splitlines()[2:] == ran.out.splitlines()[2:]
    assert json.loads(diagnose("page", file, "--format", "jsonl").out)["verdict"]["mode"] == "one_page"


@pytest.mark.parametrize("body", [b"", b"<html></html>", b"node_cpu_seconds_total 1\n", b"\xff\xfe\x00"])
def test_page_that_is_none(diagnose: Diagnose, tmp_path: Path, body: bytes) -> None:
    file = tmp_path / "page.prom"
    file.write_bytes(body)
    ran = diagnose("page", file)
    assert ran.code == 3 and str(file) in ran.out
    assert diagnose("page", tmp_path / "none").code == 3


def test_demo(diagnose: Diagnose) -> None:
    began = time.monotonic()
    ran = diagnose("demo", "--speed", 20)
    assert time.monotonic() - began < 15
    assert ran.code == 0
    assert "L1-BOUND" in ran.out and "L2 idle" in ran.out
    assert "is served at http://127.0.0.1:" in ran.err and "exit code is 2" in ran.err


def test_watch_prints_changes(diagnose: Diagnose, engine: Callable[..., str]) -> None:
    ran = diagnose("watch", engine(KILLED, speed=SLOW), "127.0.0.1:9", *FAST, "--refresh", "200ms", "--duration", "4s")
    lines = ran.out.splitlines()
    assert len([line for line in lines if "127.0.0.1:9 rank 0: UNREACHABLE" in line]) == 1
    mine = [line for line in lines if "127.0.0.1:9 " not in line]
    assert "NO BOTTLENECK" in mine[0] or "UNKNOWN" in mine[0]
    assert "UNREACHABLE" in mine[-1]
    assert ran.code == 3


# ---------------------------------------------------------------- explain, rules


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("head_does_not_fit", "check head_does_not_fit"),
        ("l1_reservation", "verdict l1_reservation"),
        ("raise_slots", "--max-num-seqs"),
        ("gate_share_min", "0.2"),
        ("share_critical", "threshold share_critical"),
        ("head_fits_ratio", "signal head_fits_ratio"),
        ("max_num_seqs", "fact max_num_seqs"),
    ],
)
def test_explain(diagnose: Diagnose, name: str, words: str) -> None:
    ran = diagnose("explain", name)
    assert ran.code == 0 and words in ran.out


def test_explain_everything_that_is_listed(diagnose: Diagnose) -> None:
    for kind in ("checks", "verdicts", "remedies", "thresholds", "gates", "signals", "facts"):
        listed = diagnose("explain", kind)
        assert listed.code == 0
        assert diagnose("explain", listed.out.split()[0]).code == 0


def test_explain_offers_what_is_close(diagnose: Diagnose) -> None:
    ran = diagnose("explain", "head_doesnt_fit")
    assert ran.code == 64 and "head_does_not_fit" in ran.err


def test_rules(diagnose: Diagnose, tmp_path: Path) -> None:
    assert "head_does_not_fit" in diagnose("rules", "list").out
    shipped = diagnose("rules", "lint")
    assert shipped.code == 0 and "no mistakes" in shipped.out
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "mine.yaml").write_text("id: mine\nlabel: x\nkind: nonsense\n")
    ran = diagnose("rules", "lint", tmp_path)
    assert ran.code == 1 and "mine.yaml:1:" in ran.out and "1 mistake." in ran.out
    assert diagnose("rules", "lint", tmp_path / "none").code == 64


def test_a_bad_rule_file_is_said_and_skipped(diagnose: Diagnose, tmp_path: Path) -> None:
    (tmp_path / "thresholds.yaml").write_text("gate_share_min: {value: 0.3}\nttft_target_seconds: {value: [}\n")
    ran = diagnose("replay", PREEMPTING, "--last", "--rules", tmp_path)
    assert ran.code == 2
    assert "thresholds.yaml:2: not valid YAML" in ran.err and "skipped" in ran.err
    assert diagnose("replay", PREEMPTING, "--rules", tmp_path / "none").code == 64


def test_thresholds_can_be_overridden(diagnose: Diagnose, tmp_path: Path) -> None:
    (tmp_path / "thresholds.yaml").write_text("share_critical: {value: 1.1}\n")
    ran = diagnose("replay", PREEMPTING, "--last", "--rules", tmp_path)
    assert (ran.code, ran.err) == (1, "")


def test_configuration_is_read_again_after_a_restart(diagnose: Diagnose, serve: Callable[..., str]) -> None:
    asked: list[str] = []

    def handle(request) -> None:  # type: ignore[no-untyped-def]
        path = request.path.partition("?")[0]
        started = 1000 if asked.count("/metrics") < 6 else 2000
        asked.append(path)
        page = PAGE + f"process_start_time_seconds {started}\n".encode()
        sends(page if path == "/metrics" else INFO.get(path, b""))(request)

    ran = diagnose(serve(handle), *FAST, "--format", "json")
    assert asked.count("/version") == asked.count("/server_info") == 2
    assert json.loads(ran.out)["diagnoses"][0]["findings"][0]["code"] == "restart"


def test_configuration_that_hangs_delays_nothing(diagnose: Diagnose, serve: Callable[..., str]) -> None:
    def handle(request) -> None:  # type: ignore[no-untyped-def]
        if request.path != "/metrics":
            time.sleep(1.0)
        sends(PAGE)(request)

    ran = diagnose(serve(handle), *FAST, "--timeout", "300ms", "--format", "json")
    (found,) = json.loads(ran.out)["diagnoses"]
    assert found["scrapes"] > 5 and ran.code == 0
