"""Who gets in, over real sockets: tokens, scopes, Host, Origin, rates, TLS; and what the log keeps."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from pydantic import ValidationError

from diagnoser.errors import UsageError
from diagnoser.service.api.limits import RateLimit
from diagnoser.service.api.protocol import Protocol
from diagnoser.service.api.settings import WebSettings
from diagnoser.service.api.tokens import Token, Tokens, hash_of, new_token, read_tokens
from diagnoser.service.logs import JsonLines
from service.web_kit import serve

Run = Callable[..., Any]
SILENCE = {"match": {"target": "10.0.*"}, "until": "2099-01-01T00:00:00Z"}
ALERTS = {"version": "4", "groupKey": "{}", "status": "firing", "alerts": []}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def tokens_file(path: Path, **tokens: str) -> Path:
    """name__scope_scope=token"""
    lines = ["tokens:"]
    for name, token in tokens.items():
        who, _, scopes = name.partition("__")
        lines.append(f"- {{name: {who}, hash: '{hash_of(token)}', scopes: [{scopes.replace('_', ', ')}]}}")
    path.write_text("\n".join(lines) + "\n")
    return path


# ---------------------------------------------------------------- where it may listen


@pytest.mark.parametrize("listen", ["127.0.0.1:9180", "[::1]:9180", "localhost:9180", "127.3.2.1:1"])
def test_loopback_needs_no_token(listen: str) -> None:
    assert WebSettings(listen=listen).loopback


@pytest.mark.parametrize("listen", ["0.0.0.0:9180", "[::]:9180", "10.0.0.1:9180", "gpu-7.example:9180"])
def test_any_other_address_needs_tokens_or_the_word_insecure(listen: str) -> None:
    with pytest.raises(ValidationError, match=r"tokens_file.*insecure: true"):
        WebSettings(listen=listen)
    assert WebSettings(listen=listen, insecure=True).insecure
    assert WebSettings(listen=listen, tokens_file=Path("tokens.yaml")).tokens_file


@pytest.mark.parametrize(
    "wrong",
    [{"listen": "9180"}, {"listen": "::1:9180"}, {"listen": "127.0.0.1:99999"}, {"cors": ["*"]}, {"rate_limit": "0/s"},
     {"allow": {"cidrs": ["10.0.0.1/8"]}}, {"allow": {"ports": [0]}}, {"max_body": "none"}, {"unknown": 1}],
)  # fmt: skip
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        WebSettings.model_validate(wrong)


def test_all_addresses_with_a_token(tmp_path: Path) -> None:
    token = new_token()
    file = tokens_file(tmp_path / "t.yaml", page__read=token)
    with serve({"listen": "0.0.0.0:0", "tokens_file": str(file)}) as web:
        url = f"http://127.0.0.1:{web.server.address.rpartition(':')[2]}"
        assert httpx.get(f"{url}/api/v1/engines", trust_env=False).status_code == 401
        assert httpx.get(f"{url}/api/v1/engines", headers=bearer(token), trust_env=False).status_code == 200


def test_address_that_is_taken_is_told() -> None:
    with (
        serve() as web,
        pytest.raises(UsageError, match="cannot be listened on"),
        serve({"listen": web.server.address}),
    ):
        pass


def test_small_answers_are_sent_at_once() -> None:
    """asyncio switches Nagle's algorithm off only for sockets that say they are TCP."""
    with serve() as web:
        listening = [sock for server in web.server._server.servers for sock in server.sockets]  # type: ignore[union-attr]
        assert [sock.proto for sock in listening] == [socket.IPPROTO_TCP]


def test_insecure_answers_anybody() -> None:
    with serve({"listen": "0.0.0.0:0", "insecure": True}) as web:
        url = f"http://127.0.0.1:{web.server.address.rpartition(':')[2]}/api/v1/engines"
        assert httpx.get(url, headers={"Host": "anything.example"}, trust_env=False).status_code == 200


# ---------------------------------------------------------------- tokens


def test_scopes(tmp_path: Path) -> None:
    read, write, hook = new_token(), new_token(), new_token()
    file = tokens_file(tmp_path / "t.yaml", grafana__read=read, admin__read_write=write, am__webhook=hook)
    requests = [("GET", "/api/v1/engines", None), ("GET", "/metrics", None), ("POST", "/api/v1/config/reload", None),
                ("POST", "/api/v1/silences", SILENCE), ("POST", "/api/v1/webhook/alertmanager", ALERTS)]  # fmt: skip
    expected = {
        read: [200, 200, 403, 403, 403],
        write: [200, 200, 200, 201, 403],
        hook: [403, 403, 403, 403, 202],
        new_token(): [401] * 5,
    }
    with serve({"tokens_file": str(file)}) as web:
        for token, statuses in expected.items():
            got = [web.client.request(m, p, json=body, headers=bearer(token)).status_code for m, p, body in requests]
            assert got == statuses
        lacking = web.client.post("/api/v1/config/reload", headers=bearer(read))
        assert lacking.headers["WWW-Authenticate"] == 'Bearer error="insufficient_scope", scope="write"'
        assert web.get("/api/v1/engines").headers["WWW-Authenticate"] == "Bearer"


def test_probes_and_the_description_need_no_token(tmp_path: Path) -> None:
    file = tokens_file(tmp_path / "t.yaml", page__read=new_token())
    with serve({"tokens_file": str(file)}) as web:
        assert web.json("/healthz") == {"status": "ok"} and web.get("/readyz").status_code == 503
        document = web.json("/api/v1/openapi.json")
        assert document["paths"]["/api/v1/engines"]["get"]["security"] == [{"token": []}]
        assert "security" not in document["paths"]["/healthz"]["get"]


@pytest.mark.parametrize(
    "headers",
    [{"Authorization": "Basic {token}"}, {"Authorization": "{token}"}, {"Authorization": "Bearer"},
     {"Authorization": "Bearer {token}x"}, {"X-Token": "{token}"}, {"Cookie": "token={token}"},
     {"Authorization": "Bearer " + "x" * 30_000}],
)  # fmt: skip
def test_only_a_bearer_header_counts(tmp_path: Path, headers: dict[str, str]) -> None:
    token = new_token()
    file = tokens_file(tmp_path / "t.yaml", page__read=token)
    with serve({"tokens_file": str(file)}) as web:
        sent = {name: value.format(token=token) for name, value in headers.items()}
        assert web.get("/api/v1/engines", headers=sent).status_code == 401
        for name in ("token", "access_token", "authorization"):
            assert web.get("/api/v1/engines", params={name: token}).status_code == 401


def test_rotation_without_a_gap_and_expiry(tmp_path: Path) -> None:
    old, new = new_token(), new_token()
    file = tokens_file(tmp_path / "t.yaml", grafana__read=old)

    def status(token: str) -> int:
        return web.get("/api/v1/engines", headers=bearer(token)).status_code

    with serve({"tokens_file": str(file)}) as web:
        assert (status(old), status(new)) == (200, 401)
        file.write_text(file.read_text() + f"- {{name: grafana, hash: '{hash_of(new)}', scopes: [read]}}\n")
        assert (status(old), status(new)) == (200, 200)
        tokens_file(file, grafana__read=new)
        assert (status(old), status(new)) == (401, 200)
        over = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
        file.write_text(f"tokens: [{{name: grafana, hash: '{hash_of(new)}', scopes: [read], expires: {over}}}]\n")
        assert status(new) == 401


def test_file_that_turns_bad_keeps_the_tokens_and_says_so(tmp_path: Path) -> None:
    token = new_token()
    file = tokens_file(tmp_path / "t.yaml", page__read=token)
    with serve({"tokens_file": str(file)}) as web:
        file.write_text("tokens: [")
        assert web.get("/api/v1/engines", headers=bearer(token)).status_code == 200
        problems = web.json("/api/v1/status", headers=bearer(token))["problems"]
        assert len(problems) == 1 and "is no YAML" in problems[0]
        file.unlink()
        assert web.get("/api/v1/engines", headers=bearer(token)).status_code == 200


@pytest.mark.parametrize(
    "text",
    ["", "tokens: 1", "tokens: [{name: a}]", "tokens: [{name: a, hash: 'sha256:xx', scopes: [read]}]", "a: [",
     "tokens: [{name: a, hash: 'sha256:" + "0" * 64 + "', scopes: []}]",
     "tokens: [{name: a, hash: 'sha256:" + "0" * 64 + "', scopes: [all]}]", "!!python/object:os.system {}"],
)  # fmt: skip
def test_bad_token_files_refuse_the_start(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        Tokens(file)
    assert "0" * 64 not in str(error.value) and str(file) in str(error.value)
    with pytest.raises(UsageError, match="cannot be read"):
        Tokens(tmp_path / "none.yaml")


def test_a_clear_text_token_is_in_no_file(tmp_path: Path, diagnose: Run) -> None:
    file = tmp_path / "tokens.yaml"
    made = diagnose("token", "new", "--name", "grafana", "--file", file)
    token = made.out.strip()
    assert made.code == 0 and token.startswith("dgn_") and len(token) == 47
    assert token not in file.read_text() and token not in made.err and (file.stat().st_mode & 0o777) == 0o600
    file.write_text("# ours\n" + file.read_text())
    second = diagnose("token", "new", "--name", "am", "--scope", "webhook", "--expires", "90m", "--file", file)
    found = read_tokens(file)
    assert [(one.name, one.scopes) for one in found] == [("grafana", ("read",)), ("am", ("webhook",))]
    assert file.read_text().startswith("# ours\n") and found[1].expires is not None
    tokens = Tokens(file)
    assert tokens.find(token) == found[0] and tokens.find(second.out.strip()) == found[1]
    assert tokens.find(token[:-1]) is None


def test_token_command_says_what_is_wrong(tmp_path: Path, diagnose: Run) -> None:
    assert diagnose("token", "new", "--name", "a b").code == 64
    flow = tmp_path / "flow.yaml"
    flow.write_text(f"tokens: [{{name: a, hash: '{hash_of('x')}', scopes: [read]}}]\n")
    before = flow.read_text()
    refused = diagnose("token", "new", "--name", "b", "--file", flow)
    assert refused.code == 64 and "by hand" in refused.err and flow.read_text() == before
    assert os.listdir(tmp_path) == ["flow.yaml"]
    shown = diagnose("token", "new", "--name", "b", "--scope", "read", "--scope", "write")
    assert shown.code == 0 and "scopes: [read, write]" in shown.err and hash_of(shown.out.strip()) in shown.err


def test_expiry_in_words_of_yaml_is_utc() -> None:
    token = Token.model_validate(
        {"name": "a", "hash": hash_of("x"), "scopes": ["read"], "expires": datetime(2026, 1, 1, 12)}
    )
    assert token.valid(datetime(2026, 1, 1, 11, 59, tzinfo=UTC)) and not token.valid(
        datetime(2026, 1, 1, 12, tzinfo=UTC)
    )


# ---------------------------------------------------------------- browsers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9180", "127.0.0.1.evil.example", "", "10.0.0.1"])
def test_rebound_names_are_refused_on_loopback(host: str) -> None:
    with serve() as web:
        refused = web.get("/api/v1/engines", headers={"Host": host})
        assert refused.status_code == 403 and refused.json()["type"].endswith("host-refused")
        assert web.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:9180", "diagnoser.example"])
def test_own_names_are_not(host: str) -> None:
    with serve({"hosts": ["diagnoser.example"]}) as web:
        assert web.get("/api/v1/engines", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 200),
    ],
)
def test_foreign_pages_cannot_make_anything_happen(headers: dict[str, str], status: int) -> None:
    with serve() as web:
        assert web.client.post("/api/v1/config/reload", headers=headers).status_code == status
        own = {"Origin": web.url}
        assert web.client.post("/api/v1/config/reload", headers=own).status_code == 200


def test_no_other_origin_reads_unless_told() -> None:
    grafana = {"Origin": "https://grafana.example"}
    with serve() as web:
        assert "Access-Control-Allow-Origin" not in web.get("/api/v1/engines", headers=grafana).headers
        assert web.client.options("/api/v1/engines", headers=grafana).status_code == 403
    with serve({"cors": ["https://grafana.example"]}) as web:
        answer = web.get("/api/v1/engines", headers=grafana)
        assert answer.headers["Access-Control-Allow-Origin"] == "https://grafana.example"
        assert "Origin" in answer.headers["Vary"] and "Access-Control-Allow-Credentials" not in answer.headers
        preflight = web.client.options("/api/v1/engines", headers=grafana)
        assert preflight.status_code == 204 and "Authorization" in preflight.headers["Access-Control-Allow-Headers"]
        other = web.get("/api/v1/engines", headers={"Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in other.headers


@pytest.mark.parametrize("path", ["/api/v1/engines", "/healthz", "/metrics", "/nothing", "/api/v1/engines/nobody/0"])
def test_headers_of_every_answer(path: str) -> None:
    with serve() as web:
        headers = web.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer" and "server" not in headers
    assert "no-store" in headers["Cache-Control"] or "no-cache" in headers["Cache-Control"]


def test_page_may_load_what_is_its_own_and_nothing_else() -> None:
    with serve() as web:
        policy = web.get("/").headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy and "http" not in policy


# ---------------------------------------------------------------- limits


def test_requests_of_one_client_are_limited() -> None:
    with serve({"rate_limit": "2/m"}) as web:
        statuses = [web.get("/api/v1/engines").status_code for _ in range(3)]
        assert statuses == [200, 429, 429]
        limited = web.get("/api/v1/engines")
        assert 0 < int(limited.headers["Retry-After"]) <= 31
        assert limited.headers["Content-Type"] == "application/problem+json"
        assert web.json("/healthz") == {"status": "ok"}


def test_bucket_fills_again_and_clients_are_apart() -> None:
    now = [0.0]
    limit = RateLimit(10.0, lambda: now[0])
    assert [limit.wait("10.0.0.1") == 0.0 for _ in range(21)] == [True] * 20 + [False]
    assert limit.wait("10.0.0.2") == 0.0 and limit.wait("10.0.0.1") == pytest.approx(0.1)
    now[0] = 0.1
    assert limit.wait("10.0.0.1") == 0.0 and limit.wait("10.0.0.1") > 0
    assert [limit.wait(f"2001:db8:0:1::{i:x}") == 0.0 for i in range(21)][-1] is False


def test_many_clients_need_little_memory() -> None:
    limit = RateLimit(10.0)
    for i in range(12_000):
        limit.wait(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}")
    assert len(limit._clients) == 10_000


def test_forwarded_addresses_count_only_from_trusted_proxies() -> None:
    def third(settings: dict[str, Any]) -> int:
        with serve({"rate_limit": "1/h", **settings}) as web:
            for i in range(2):
                web.get("/api/v1/engines", headers={"X-Forwarded-For": f"1.2.3.4, 10.9.9.{i}"})
            return web.get("/api/v1/engines", headers={"X-Forwarded-For": "1.2.3.4, 10.9.9.9"}).status_code

    assert third({}) == 429
    assert third({"trusted_proxies": ["127.0.0.0/8"]}) == 200


# ---------------------------------------------------------------- the log


def test_log_holds_no_token_and_no_query(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    token, wrong = new_token(), new_token()
    file = tokens_file(tmp_path / "t.yaml", grafana__read=token)
    caplog.set_level(logging.DEBUG, "diagnoser")
    with serve({"tokens_file": str(file)}) as web:
        web.get("/api/v1/engines", params={"token": token, "password": "hunter2"}, headers=bearer(token))
        web.get("/api/v1/engines", headers=bearer(wrong))
        web.get("/a%0ab%1b[31m")
    lines = [JsonLines().format(record) for record in caplog.records]
    text = "\n".join(lines)
    assert token not in text and wrong not in text and "hunter2" not in text and hash_of(token) not in text
    told = [json.loads(line) for line in lines if '"diagnoser.access"' in line]
    first = next(one for one in told if one["path"] == "/api/v1/engines")
    assert (first["status"], first["token_name"], first["client"]) == (422, "grafana", "127.0.0.1")
    assert any(one["path"] == "/a?b?[31m" for one in told)


# ---------------------------------------------------------------- TLS


def make(folder: Path, name: str, *extra: str) -> tuple[Path, Path]:
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert),
         *extra],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def test_tls_and_client_certificates(tmp_path: Path) -> None:
    cert, key = make(tmp_path, "server")
    mine, mine_key = make(tmp_path, "client")
    context = ssl.create_default_context(cafile=str(cert))
    with serve({"tls": {"cert": str(cert), "key": str(key)}}) as web:
        answer = httpx.get(f"{web.url}/healthz", verify=context, trust_env=False)
        assert answer.status_code == 200 and answer.headers["Strict-Transport-Security"]
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{web.url}/healthz", trust_env=False)
    with serve({"tls": {"cert": str(cert), "key": str(key), "client_ca": str(mine)}}) as web:
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{web.url}/healthz", verify=context, trust_env=False)
        context.load_cert_chain(mine, mine_key)
        assert httpx.get(f"{web.url}/healthz", verify=context, trust_env=False).status_code == 200


def test_certificate_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("no certificate")
    settings = {"tls": {"cert": str(tmp_path / "c.pem"), "key": str(tmp_path / "c.pem")}}
    with pytest.raises(UsageError, match=r"web.tls: certificate"), serve(settings):
        pass


# ---------------------------------------------------------------- reload


def test_reload_takes_over_tokens_and_limits_but_no_address(tmp_path: Path) -> None:
    token = new_token()
    file = tokens_file(tmp_path / "t.yaml", admin__read_write=token)
    with serve() as web:
        old = web.world.config
        web.world.file = old.model_copy(update={"web": old.web.model_copy(update={"tokens_file": file})})
        assert web.client.post("/api/v1/config/reload").status_code == 200
        assert web.get("/api/v1/engines").status_code == 401
        web.world.file = old.model_copy(update={"web": old.web.model_copy(update={"listen": "127.0.0.1:1"})})
        refused = web.client.post("/api/v1/config/reload", headers=bearer(token))
        assert refused.status_code == 409 and "restart" in refused.json()["detail"]
        assert web.get("/api/v1/engines").status_code == 401


def test_client_that_sends_slowly_holds_up_nobody() -> None:
    with serve() as web, socket.create_connection(("127.0.0.1", int(web.url.rpartition(":")[2]))) as slow:
        slow.sendall(b"POST /api/v1/silences HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n")
        assert web.json("/healthz") == {"status": "ok"}
        slow.sendall(b"{}")
        assert slow.recv(100).startswith(b"HTTP/1.1 422")


def test_connection_that_asks_nothing_is_let_go() -> None:
    class Quick(Protocol):
        head_seconds = 0.1

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def main() -> list[bytes]:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            server = uvicorn.Server(uvicorn.Config(answer, http=Quick, lifespan="off", log_config=None))
            serving = asyncio.create_task(server.serve([taken]))
            got = []
            for sent in (b"", b"GET / HTTP/1.1\r\nHo", b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT"):
                reader, writer = await asyncio.open_connection(*taken.getsockname())
                writer.write(sent)
                got.append(await reader.read())  # until the server closes
                writer.close()
                await writer.wait_closed()
            server.should_exit = True
            await serving
            return got

    nothing, half, one = asyncio.run(asyncio.wait_for(main(), 30))
    assert nothing == half == b"" and one.startswith(b"HTTP/1.1 200") and one.endswith(b"ok")
