"""Whatever comes in: one clear sentence that names the target, exit code 3, and the other targets' verdicts stand."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from ran import Ran

from diagnoser.cli import guarded
from diagnoser.sources.recording import open_recording

from .conftest import FAST, HEALTHY, PREEMPTING, Handler, sends, shell

Diagnose = Callable[..., Ran]
QUICK = ("--window", "300ms", "--interval", "50ms", "--timeout", "400ms")


def hangs(request: BaseHTTPRequestHandler) -> None:
    time.sleep(1.0)


def huge(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(100 << 20))
    request.end_headers()
    for _ in range(100):
        request.wfile.write(b"x" * (1 << 20))


BOMB = gzip.compress(bytes(40 << 20))
REFUSALS: dict[str, tuple[Handler, str]] = {
    "hangs": (hangs, "gave no complete answer within 0.4 s"),
    "redirects": (sends(b"", 302, [("Location", "http://elsewhere/metrics")]), "redirects to http://elsewhere/metrics"),
    "401": (sends(b"", 401), "answers 401 Unauthorized: it needs a token; pass --header"),
    "404": (sends(b"", 404), "answers 404 Not Found: no metrics at this path"),
    "500": (sends(b"", 500), "answers 500 Internal Server Error"),
    "html": (sends(b"<html><body>hello</body></html>"), "answers with an HTML page"),
    "empty": (sends(b""), "answers with an empty page"),
    "binary": (sends(bytes(range(256)) * 50), "answers with something that is not Prometheus text"),
    "truncated": (sends(b"vllm:num_requests_running 1\n", length=10_000), "breaks off or does not speak HTTP"),
    "100 MB": (huge, "answers with more than 32 MiB"),
    "bomb": (sends(BOMB, headers=[("Content-Encoding", "gzip")]), "answers with more than 32 MiB"),
    "not gzip": (sends(b"no", headers=[("Content-Encoding", "gzip")]), "answers with damaged gzip data"),
    "other exporter": (sends(b"node_cpu_seconds_total 1\nnode_load1 2\n"), "it looks like node_exporter"),
    "no engine": (sends(b"process_cpu_seconds_total 1\n"), "with metrics of its process only"),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_no_page(diagnose: Diagnose, serve: Callable[..., str], kind: str) -> None:
    handler, words = REFUSALS[kind]
    address = serve(handler)
    timeout = "400ms" if kind == "hangs" else "4s"
    ran = diagnose(address, *QUICK, "--timeout", timeout, "--format", "jsonl")
    (found,) = map(json.loads, ran.out.splitlines())
    assert ran.code == 3
    assert found["verdict"]["bottleneck"] == "unreachable"
    assert found["verdict"]["because"][0].startswith(f"{address} ")
    assert words in found["verdict"]["because"][0]


def test_the_others_stand(diagnose: Diagnose, serve: Callable[..., str], engine: Callable[..., str]) -> None:
    bad = [serve(REFUSALS[kind][0]) for kind in ("html", "500", "truncated", "bomb")]
    good = engine(PREEMPTING, since=20.0)
    ran = diagnose(*bad, good, "127.0.0.1:9", *FAST, "--format", "jsonl")
    found = {d["engine"]["target"]: d["verdict"]["bottleneck"] for d in map(json.loads, ran.out.splitlines())}
    assert found == {**dict.fromkeys([*bad, "127.0.0.1:9"], "unreachable"), good: "l1"}
    assert ran.code == 2


LABELS = '{engine="0",model_name="m"}'
GOOD = f"""# HELP vllm:num_requests_running Running.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{LABELS} 3
vllm:num_requests_waiting{LABELS} 0
vllm:kv_cache_usage_perc{LABELS} 0.5
vllm:prompt_tokens_total{LABELS} 100
vllm:generation_tokens_total{LABELS} 100
vllm:cache_config_info{{block_size="16",num_gpu_blocks="100",engine="0"}} 1
"""
ODD = {
    "invalid utf-8": GOOD.encode() + b'vllm:lora{name="\xff\xfe"} 1\n',
    "nan": GOOD.replace("} 0.5", "} NaN").encode(),
    "inf": GOOD.replace("} 3", "} +Inf").encode(),
    "negative": GOOD.replace("} 0.5", "} -0.39").encode(),
    "duplicate series": (GOOD + f"vllm:num_requests_running{LABELS} 5\n").encode(),
    "exemplars": GOOD.replace("} 3", '} 3 # {trace_id="x"} 0.5 1.5').encode(),
    "openmetrics": GOOD.encode() + b"# EOF\n",
    "timestamps": GOOD.replace("} 3", "} 3 1795976065000").encode(),
    "garbage lines": (GOOD + "what is this\n}{\n\x00\x01\n" + "x" * 100_000 + "\n").encode(),
    "escapes": GOOD.replace('model_name="m"', 'model_name="\\"\\n\x1b[31m"').encode(),
    "huge numbers": GOOD.replace("} 100", "} 1e308").encode(),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_pages_are_read(diagnose: Diagnose, serve: Callable[..., str], kind: str) -> None:
    address = serve(sends(ODD[kind]))
    ran = diagnose(address, *QUICK)
    assert "bug" not in ran.out + ran.err
    assert address in ran.out.splitlines()[0] and "\x1b" not in ran.out
    expected = 3 if kind in ("nan", "inf", "negative") else 0
    assert ran.code == expected, ran.out
    if expected:
        assert "impossible" in ran.out


def test_a_token_is_never_shown(diagnose: Diagnose, tmp_path: Path) -> None:
    ran = diagnose("http://user:secret@127.0.0.1:9/metrics", *QUICK)
    assert ran.code == 3 and "secret" not in ran.out + ran.err
    file = tmp_path / "headers"
    file.write_text("Authorization Bearer secret\n")
    ran = diagnose("127.0.0.1:9", "--header-file", file)
    assert ran.code == 64 and "secret" not in ran.err


# ---------------------------------------------------------------- recordings


def recorded(folder: Path, pages: dict[int, bytes]) -> Path:
    folder.mkdir()
    for stamp, body in pages.items():
        (folder / f"{stamp}.prom").write_bytes(body)
    return folder


def some_pages(count: int) -> dict[int, bytes]:
    pages = [page for page in open_recording(PREEMPTING).targets[0].pages() if page.text is not None][:count]
    return {round(page.at * 1000): (page.text or "").encode() for page in pages}


def test_recordings_that_are_none(diagnose: Diagnose, tmp_path: Path) -> None:
    (tmp_path / "no.tar.gz").write_bytes(b"this is no archive")
    (tmp_path / "empty.tar").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("notes.txt"), io.BytesIO())
    for name in ("missing.tar.gz", "no.tar.gz", "empty.tar", "folder", "other.tar"):
        ran = diagnose("replay", tmp_path / name)
        assert (ran.code, ran.out) == (3, ""), name
        assert ran.err.count("\n") == 1 and str(tmp_path / name) in ran.err


def test_recording_of_one_page(diagnose: Diagnose, tmp_path: Path) -> None:
    ran = diagnose("replay", recorded(tmp_path / "one", some_pages(1)))
    assert ran.code == 3 and "one page cannot tell" in ran.out


def test_recording_with_a_hole(diagnose: Diagnose, tmp_path: Path) -> None:
    pages = some_pages(60)
    kept = {stamp: body for i, (stamp, body) in enumerate(pages.items()) if not 10 <= i < 55}
    ran = diagnose("replay", recorded(tmp_path / "hole", kept), "--step", "10s", "--format", "jsonl")
    assert ran.code in (0, 1, 2, 3) and ran.err == ""
    assert len(ran.out.splitlines()) >= 3


def test_recording_that_is_cut_off(diagnose: Diagnose, tmp_path: Path) -> None:
    file = tmp_path / "cut.tar.xz"
    file.write_bytes(PREEMPTING.read_bytes()[:30_000])
    ran = diagnose("replay", file, "--last")
    assert ran.code in (1, 2) and "is cut off or damaged" in ran.out


def test_archive_out_of_order(diagnose: Diagnose, tmp_path: Path) -> None:
    file = tmp_path / "mixed.tar"
    with tarfile.open(file, "w") as archive:
        for stamp, body in reversed(some_pages(40).items()):
            member = tarfile.TarInfo(f"{stamp}.prom")
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    ran = diagnose("replay", file, "--step", "5s", "--format", "jsonl")
    times = [json.loads(line)["at"] for line in ran.out.splitlines()]
    assert times == sorted(times) and len(times) >= 2


# ---------------------------------------------------------------- the last resort


def test_no_traceback_reaches_a_user(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        raise LookupError("no such thing")

    monkeypatch.delenv("DIAGNOSE_DEBUG", raising=False)
    assert guarded(broken) == 3
    err = capsys.readouterr().err
    assert "LookupError" in err and "DIAGNOSE_DEBUG=1" in err and "Traceback" not in err
    monkeypatch.setenv("DIAGNOSE_DEBUG", "1")
    assert guarded(broken) == 3
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_goes_away() -> None:
    argv = [sys.executable, "-m", "diagnoser", "replay", str(HEALTHY), "--format", "jsonl"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_missing_rules_folder_is_a_usage_error() -> None:
    ran = shell("replay", HEALTHY, "--rules", "/nowhere")
    assert ran.code == 64 and ran.err.count("\n") == 1
