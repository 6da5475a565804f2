"""Uploads and live samples: what is read, what is refused, and where connections go."""

from __future__ import annotations

import asyncio
import gzip
import io
import lzma
import os
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diagnoser.live import Plan
from diagnoser.service.api import reach
from diagnoser.service.api.jobs import environment
from diagnoser.service.api.problems import Problem
from diagnoser.service.api.settings import Allow
from diagnoser.sources.http import normalise_url
from service.web_kit import BOUND, RECORDINGS, Elsewhere, Web, serve

PATH = "/api/v1/diagnose"
PAGE = lzma.decompress((RECORDINGS.parent / "pages" / "vllm-0.32.0-preempting.prom.xz").read_bytes())
LOCAL = {"cidrs": ["127.0.0.0/8"], "ports": list(range(1024, 65536))}


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve({"max_upload": "2MiB"}) as web:
        yield web


def archive(members: list[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def refused(answer: Any, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json" and words in answer.json()["detail"]


def test_uploaded_recording(web: Web) -> None:
    body = (RECORDINGS / f"{BOUND}.tar.xz").read_bytes()
    answer = web.client.post(PATH, content=body)
    found = answer.json()
    assert answer.status_code == 200 and found["diagnoses"][0]["verdict"]["bottleneck"] == "l1"
    assert found["diagnoses"][0]["what_if"] and len(found["timeline"]) > 5
    assert "/tmp" not in answer.text
    ours = web.client.post(PATH, content=body, params={"fact": "max_num_seqs=64", "window": 20}).json()
    assert ours["diagnoses"][0]["facts"]["max_num_seqs"] == {"value": 64.0, "origin": "--fact"}


def test_uploaded_page(web: Web) -> None:
    found = web.client.post(PATH, content=PAGE, headers={"Content-Type": "text/plain"}).json()
    assert found["diagnoses"][0]["engine"]["family"] == "vllm" and "no rates" in found["notes"][0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "Send a metrics page"),
        (b"<html>", "HTML page"),
        (os.urandom(2000), "not Prometheus text"),
        (b"\x1f\x8b" + os.urandom(500), "no readable archive"),
        (lzma.compress(b"no tar"), "no readable archive"),
        (archive([("../../etc/1.prom", PAGE), ("/2.prom", PAGE)]), "holds no page"),
        (gzip.compress(archive([("readme.txt", b"x")])), "holds no page"),
        (b"node_load1 0.5\n", "it is not a vLLM or SGLang page"),
    ],
    ids=["empty", "html", "noise", "broken gzip", "no tar", "paths outside", "no page in it", "another exporter"],
)
def test_what_cannot_be_read_is_told(web: Web, body: bytes, words: str) -> None:
    refused(web.client.post(PATH, content=body), 422, words)


def test_facts_are_checked(web: Web) -> None:
    refused(web.client.post(PATH, content=PAGE, params={"fact": "no_such=1"}), 422, "no such fact")


def test_bomb_is_read_no_further_than_allowed(web: Web) -> None:
    """600 MB of zeros in 600 KB: the worker stops at its limit, and what came before is diagnosed."""
    members = archive([(f"{i}000.prom", PAGE) for i in range(1, 4)]).rstrip(b"\0")
    members += bytes(-len(members) % 512)
    huge = tarfile.TarInfo("9000.prom")
    huge.size = 700 * 2**20
    body = gzip.compress(members + huge.tobuf() + bytes(600 * 2**20), 6)
    assert len(body) < 2**20
    answer = web.client.post(PATH, content=body)
    assert answer.status_code == 200 and "only the beginning was read" in answer.json()["notes"][0]
    assert web.json("/healthz") == {"status": "ok"}


def test_upload_has_a_limit_told_or_not(web: Web) -> None:
    refused(web.client.post(PATH, content=bytes(2**21 + 1)), 413, "larger than 2 MiB")
    refused(web.client.post(PATH, content=(bytes(2**20) for _ in range(3))), 413, "larger than 2 MiB")
    refused(web.client.post("/api/v1/capacity", content=(bytes(2**20) for _ in range(2))), 413, "larger than 1 MiB")


def test_the_worker_inherits_no_secrets_but_finds_the_package() -> None:
    found = environment({"PYTHONPATH": "lib::/opt/lib", "TOKEN": "secret", "PATH": "/bin"})
    assert found["PYTHONPATH"] == f"{Path.cwd() / 'lib'}:/opt/lib" and not {"TOKEN", "PATH"} & found.keys()
    assert "PYTHONPATH" not in environment({})


def test_capacity(web: Web) -> None:
    shape = {"layers": 32, "kv_heads": 8, "head_dim": 128, "pool_bytes": "60GiB", "prompt": "8K", "output": "1K"}
    found = web.client.post("/api/v1/capacity", json=shape).json()
    assert found["kv_bytes_per_token"] == 131072 and found["max_concurrency"] > 10
    refused(web.client.post("/api/v1/capacity", json={"layers": 32}), 422, "kv")
    refused(web.client.post("/api/v1/capacity", json={**shape, "config": {}}), 422, "config")
    refused(web.client.post("/api/v1/capacity", json={}), 422, "layers with kv_heads, head_dim or kv_lora_rank")


def test_capacity_of_an_absurd_model_ends(web: Web) -> None:
    config = {"num_hidden_layers": 10**9, "num_key_value_heads": 8, "num_attention_heads": 8, "hidden_size": 1024}
    answer = web.client.post("/api/v1/capacity", json={"config": config, "pool_bytes": "1GiB"})
    assert answer.status_code == 422 and web.json("/healthz") == {"status": "ok"}


# ---------------------------------------------------------------- a target that a request names


def test_no_target_without_an_allow_list(web: Web) -> None:
    with Elsewhere(PAGE) as engine:
        refused(web.client.post(PATH, params={"target": f"127.0.0.1:{engine.port}"}), 403, "web.allow.ports")
        assert engine.asked == []


def test_target_inside_the_allow_list_is_sampled() -> None:
    with Elsewhere(PAGE) as engine, serve({"allow": LOCAL}) as web:
        answer = web.client.post(PATH, params={"target": f"127.0.0.1:{engine.port}", "window": 2})
        found = answer.json()["diagnoses"][0]
        assert found["engine"]["family"] == "vllm" and found["scrapes"] > 5
        assert engine.asked[0] == ("/metrics", f"127.0.0.1:{engine.port}")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 403),
        ("localhost", 403),
        ("[::1]", 403),
        ("[::ffff:127.0.0.1]", 403),
        ("0.0.0.0", 403),
        ("2130706433", 403),
        ("0x7f.1", 403),
        ("nobody.invalid", 422),
    ],
)
def test_address_outside_the_list_is_not_connected_to(host: str, status: int) -> None:
    allow = {"cidrs": ["10.0.0.0/8"], "ports": LOCAL["ports"]}
    with Elsewhere(PAGE) as engine, serve({"allow": allow}) as web:
        answer = web.client.post(PATH, params={"target": f"{host}:{engine.port}"})
        assert answer.status_code == status, answer.text
        assert engine.asked == []


@pytest.mark.parametrize(
    "target",
    ["http://user:secret@127.0.0.1:8000/metrics", "127.0.0.1:8000/admin", "127.0.0.1:8000/metrics?a=1",
     "file:///etc/passwd", "127.0.0.1:99999", "gopher://127.0.0.1:8000", "http://"],
)  # fmt: skip
def test_only_a_metrics_page_can_be_asked_for(target: str) -> None:
    with serve({"allow": LOCAL}) as web:
        answer = web.client.post(PATH, params={"target": target})
        assert answer.status_code == 422 and "secret" not in answer.text


def test_redirect_is_not_followed() -> None:
    with Elsewhere(PAGE) as inside:
        to = {"Location": f"http://127.0.0.1:{inside.port}/metrics"}
        with Elsewhere(status=302, headers=to) as engine, serve({"allow": LOCAL}) as web:
            answer = web.client.post(PATH, params={"target": f"127.0.0.1:{engine.port}", "window": 2}).json()
            assert answer["diagnoses"][0]["verdict"]["bottleneck"] == "unreachable"
            assert engine.asked and inside.asked == []


def test_connection_goes_to_the_address_that_was_checked() -> None:
    """The name resolves to nothing (any more): the checked address is used, and the name stays in Host."""
    with Elsewhere(PAGE) as engine:
        address = normalise_url(f"engine.invalid:{engine.port}")
        checked = reach.Checked(address, "engine.invalid", "127.0.0.1")
        windows = asyncio.run(reach.sample(checked, Plan(window=2.0, interval=0.5)))
        assert windows[0].snapshots and engine.asked[0] == ("/metrics", f"engine.invalid:{engine.port}")


def test_every_address_of_a_name_must_be_allowed() -> None:
    addresses = {found[4][0] for found in socket.getaddrinfo("localhost", 80)}
    half = Allow.model_validate({"cidrs": ["127.0.0.1/32"], "ports": [8000]})
    inside = addresses <= {"127.0.0.1"}
    try:
        asyncio.run(reach.check("localhost:8000", half))
    except Problem as problem:
        assert not inside and problem.status_code == 403
    else:
        assert inside


def test_tmp_is_left_clean(web: Web) -> None:
    before = {name for name in os.listdir("/tmp") if name.startswith("diagnose-")}
    web.client.post(PATH, content=PAGE)
    assert {name for name in os.listdir("/tmp") if name.startswith("diagnose-")} <= before
