"""Prefixes, tenants, tokens and certificates, through a proxy before a real Prometheus; and its warnings."""

from __future__ import annotations

import base64
import json
import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ran import Ran

from .conftest import FLEET_END, KILLED, PREEMPTING, TWO_RANKS, Proxy

Diagnose = Callable[..., Ran]
WHOLE = ("--at", FLEET_END, "--window", "30s", "--format", "jsonl")


def diagnoses(ran: Ran) -> list[Any]:
    return [json.loads(line) for line in ran.out.splitlines()]


@pytest.mark.parametrize("prefix", ["/prometheus", "/select/0/prometheus", "/a/b"])
def test_prefixes(diagnose: Diagnose, serve: Callable[..., str], fleet: str, prefix: str) -> None:
    url = serve(Proxy(fleet, prefix).handle)
    assert len(diagnoses(diagnose("--prometheus", url + prefix, *WHOLE))) == 7
    ran = diagnose("--prometheus", url, *WHOLE)
    assert ran.code == 3 and "servers behind a prefix need it (Mimir /prometheus" in ran.err


def test_tenant(diagnose: Diagnose, serve: Callable[..., str], fleet: str) -> None:
    url = serve(Proxy(fleet, required={"X-Scope-OrgID": "ml"}).handle)
    ran = diagnose("--prometheus", url, *WHOLE)
    assert ran.code == 3 and "no org id. It keeps several tenants; pass --tenant NAME." in ran.err
    assert len(diagnoses(diagnose("--prometheus", url, "--tenant", "ml", *WHOLE))) == 7
    assert len(diagnoses(diagnose("--prometheus", url, "--header", "X-Scope-OrgID: ml", *WHOLE))) == 7


def test_a_tenant_without_data(diagnose: Diagnose, serve: Callable[..., str], fleet: str) -> None:
    url = serve(Proxy(fleet, change=lambda answer, query: answer["data"]["result"].clear()).handle)
    ran = diagnose("--prometheus", url, "--tenant", "wrong", *WHOLE)
    assert ran.code == 3 and "is this the right tenant (--tenant)?" in ran.err


def test_bearer_and_basic(diagnose: Diagnose, serve: Callable[..., str], fleet: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    url = serve(Proxy(fleet, required={"Authorization": "Bearer s3cret"}).handle)
    assert len(diagnoses(diagnose("--prometheus", url, "--bearer-file", token, *WHOLE))) == 7
    ran = diagnose("--prometheus", url, *WHOLE)
    assert ran.code == 3 and "It wants to know who asks; pass --bearer-file FILE" in ran.err
    basic = base64.b64encode(b"me:pa ss").decode()
    url = serve(Proxy(fleet, required={"Authorization": f"Basic {basic}"}).handle)
    ran = diagnose("--prometheus", url.replace("://", "://me:pa%20ss@"), *WHOLE)
    assert len(diagnoses(ran)) == 7 and "pa%20ss" not in ran.err
    ran = diagnose("--prometheus", url.replace("://", "://me:x@"), "--bearer-file", token)
    assert ran.code == 64 and "already says who asks" in ran.err


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem, and server.pem and client.pem (certificate and key in one file) that it has signed."""
    tool = shutil.which("openssl")
    assert tool, "openssl is missing: apt-get install -y --no-install-recommends openssl"
    folder = tmp_path_factory.mktemp("certificates")

    def run(*words: str) -> None:
        subprocess.run([tool, *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    usage = ("-addext", "keyUsage=critical,keyCertSign,digitalSignature")
    run(*new, "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem", *usage)
    for name in ("server", "client"):
        files = ("-keyout", f"{name}.key", "-out", f"{name}.crt", "-CA", "ca.pem", "-CAkey", "ca.key")
        san = ("-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE")
        run(*new, "-subj", f"/CN={name}", *files, *san)
        both = (folder / f"{name}.crt").read_text() + (folder / f"{name}.key").read_text()
        (folder / f"{name}.pem").write_text(both)
    return folder


def test_custom_ca_and_client_certificate(
    diagnose: Diagnose, serve: Callable[..., str], fleet: str, certificates: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem")
    context.load_verify_locations(certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    url, ca = serve(Proxy(fleet).handle, context), certificates / "ca.pem"
    client = ("--cert", certificates / "client.crt", "--key", certificates / "client.key")
    assert len(diagnoses(diagnose("--prometheus", url, "--ca", ca, *client, *WHOLE))) == 7
    one_file = ("--cert", certificates / "client.pem")
    assert len(diagnoses(diagnose("--prometheus", url, "--ca", ca, *one_file, *WHOLE))) == 7
    ran = diagnose("--prometheus", url, *client, *WHOLE)
    assert ran.code == 3 and "has a certificate that cannot be verified" in ran.err and "--ca" in ran.err
    ran = diagnose("--prometheus", url, "--ca", ca, *WHOLE)
    assert ran.code == 3 and ran.err.count("\n") == 1
    ran = diagnose("--prometheus", url.replace("https", "http"), *WHOLE)
    assert ran.code == 3 and ran.err.count("\n") == 1


# ---------------------------------------------------------------- warnings and partial answers


def warned(answer: dict[str, Any], query: str) -> None:
    """Thanos: one store did not answer. Only the answers with samples say so."""
    if query.startswith("{"):
        answer["warnings"] = ["receive series from Addr: store-2: deadline exceeded"]


def partial(answer: dict[str, Any], query: str) -> None:
    """A VictoriaMetrics cluster with a node down."""
    answer["isPartial"] = True


@pytest.mark.parametrize("change", [warned, partial])
def test_warnings_make_what_is_not_proven_unknown(
    diagnose: Diagnose, serve: Callable[..., str], fleet: str, change: Callable[[dict[str, Any], str], None]
) -> None:
    url = serve(Proxy(fleet, change=change).handle)
    ran = diagnose("--prometheus", url, *WHOLE)
    found = diagnoses(ran)
    assert "warns: " in ran.err and "every no is unknown" in ran.err
    assert {one["verdict"]["confidence"] for one in found} == {"low"}
    assert not any(check["answer"] == "no" for one in found for check in one["checks"])
    assert all("partial_data" in [finding["code"] for finding in one["findings"]] for one in found)
    by_target = {one["engine"]["target"]: one["verdict"] for one in found}
    assert by_target[PREEMPTING]["bottleneck"] == "l1" and by_target[KILLED]["bottleneck"] == "unreachable"
    assert "none" not in {one["verdict"]["bottleneck"] for one in found}
    assert by_target[PREEMPTING]["l2"] == "unknown"


def test_healthy_by_a_partial_answer_is_unknown(diagnose: Diagnose, serve: Callable[..., str], fleet: str) -> None:
    words = ("--at", FLEET_END - 65, "--window", "30s", "--match", f'instance="{TWO_RANKS}"', "--format", "jsonl")
    assert {one["verdict"]["bottleneck"] for one in diagnoses(diagnose("--prometheus", fleet, *words))} == {"none"}
    ran = diagnose("--prometheus", serve(Proxy(fleet, change=warned).handle), *words)
    assert ran.code == 3
    assert {one["verdict"]["mode"] for one in diagnoses(ran)} == {"partial_data"}


def test_series_left_out_by_a_partial_answer(diagnose: Diagnose, serve: Callable[..., str], fleet: str) -> None:
    """Some of the pages lost everything but `up`: no failure may be made of that."""

    def lost(answer: dict[str, Any], query: str) -> None:
        warned(answer, query)
        if query.startswith("{"):
            kept = [one for one in answer["data"]["result"] if one["metric"]["instance"] != PREEMPTING]
            ups = [one for one in answer["data"]["result"] if one["metric"].get("__name__") == "up"]
            answer["data"]["result"] = kept + [one for one in ups if one not in kept]

    ran = diagnose("--prometheus", serve(Proxy(fleet, change=lost).handle), *WHOLE)
    assert PREEMPTING not in {one["engine"]["target"] for one in diagnoses(ran)}
    assert f"no more for a minute, so not shown: {PREEMPTING}" in ran.err


def test_infos_are_no_warnings(diagnose: Diagnose, serve: Callable[..., str], fleet: str) -> None:
    """Prometheus 3 annotates queries with `infos`."""
    url = serve(
        Proxy(fleet, change=lambda answer, query: answer.update(infos=["metric might not be a counter"])).handle
    )
    ran = diagnose("--prometheus", url, *WHOLE)
    assert "warns" not in ran.err and "high" in {one["verdict"]["confidence"] for one in diagnoses(ran)}
