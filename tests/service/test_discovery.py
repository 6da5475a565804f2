"""Where addresses come from: files that change, servers that fail, records of a real name server."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import httpx
import pytest

from diagnoser.service.config_models import TargetGroup
from diagnoser.service.discovery.base import DiscoveryError, Found, target_groups
from diagnoser.service.discovery.watch import Watch, source_of
from diagnoser.service.poller import specs_of


def group(**settings: object) -> TargetGroup:
    return TargetGroup.model_validate(settings)


class Watched:
    """A watch and one event loop to refresh it in."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(trust_env=False)
        made = group(**settings)
        self.watch = Watch(made, source_of(made, folder, self._client))

    def refresh(self) -> bool:
        return self._runner.run(self.watch.refresh())

    @property
    def addresses(self) -> list[str]:
        return [one.address for one in self.watch.found]

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    made: list[Watched] = []

    def make(**settings: object) -> Watched:
        made.append(Watched(tmp_path, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


Make = Callable[..., Watched]


# ---------------------------------------------------------------- the format


@pytest.mark.parametrize(
    "text",
    [
        '[{"targets": ["a:8000", "b:8000"], "labels": {"team": "chat", "shard": 3}}]',
        "- targets: [a:8000, b:8000]\n  labels: {team: chat, shard: 3}\n",
    ],
)
def test_both_spellings_of_the_format(text: str) -> None:
    labels = {"team": "chat", "shard": "3"}
    assert target_groups(text, "x") == [Found("a:8000", labels), Found("b:8000", labels)]


@pytest.mark.parametrize(
    "text",
    ["{", '{"targets": []}', "[1]", '[{"targets": "a"}]', '[{"targets": [1]}]', '[{"targets": [], "lables": {}}]'],
)
def test_what_is_no_list_of_targets(text: str) -> None:
    with pytest.raises(DiscoveryError, match=r"^x: "):
        target_groups(text, "x")


def test_labels_steer_the_address_and_travel() -> None:
    labels = {"__scheme__": "https", "__metrics_path__": "/m", "pod": "p1", "team": "own"}
    made = group(static=["x"], labels={"team": "group", "dc": "a"})
    watch = Watch(made, source_of(made, Path(), httpx.AsyncClient()))
    watch.found = (Found("a:8000", labels), Found("b:8000"), Found("http://c:1/metrics"))
    specs = specs_of([watch])
    assert {name: spec.url for name, spec in specs.items()} == {
        "a:8000/m": "https://a:8000/m",
        "b:8000": "http://b:8000/metrics",
        "c:1": "http://c:1/metrics",
    }
    assert specs["a:8000/m"].labels == {"team": "own", "dc": "a", "pod": "p1"}


def test_what_is_no_address_is_left_out_and_the_first_of_a_name_counts() -> None:
    made, again = group(static=["x"], interval="2s"), group(static=["x"], interval="3s")
    watches = [Watch(one, source_of(one, Path(), httpx.AsyncClient())) for one in (made, again)]
    watches[0].found = (Found("a:8000"), Found("not an address"))
    watches[1].found = (Found("a:8000"),)
    assert [(spec.name, spec.group.interval) for spec in specs_of(watches).values()] == [("a:8000", 2.0)]


# ---------------------------------------------------------------- files


def test_files_are_read_again_when_they_change(tmp_path: Path, watched: Make) -> None:
    one = watched(file_sd=["t/*.json", "t/*.yaml"])
    assert not one.refresh() and one.addresses == [], "no file is no error"
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.json").write_text('[{"targets": ["a:1"]}]')
    (tmp_path / "t" / "b.yaml").write_text("- targets: [b:1]\n")
    assert one.refresh() and one.addresses == ["a:1", "b:1"]
    assert not one.refresh()
    replaced = tmp_path / "new"
    replaced.write_text('[{"targets": ["a:2"]}]')
    os.replace(replaced, tmp_path / "t" / "a.json")
    assert one.refresh() and one.addresses == ["a:2", "b:1"]
    (tmp_path / "t" / "b.yaml").unlink()
    assert one.refresh() and one.addresses == ["a:2"]


def test_a_bad_file_keeps_its_last_list_and_others_go_on(tmp_path: Path, watched: Make) -> None:
    one = watched(file_sd=["*.json"])
    (tmp_path / "a.json").write_text('[{"targets": ["a:1"]}]')
    (tmp_path / "b.json").write_text('[{"targets": ["b:1"]}]')
    one.refresh()
    (tmp_path / "a.json").write_text('[{"targets": ["a:')  # half written
    (tmp_path / "b.json").write_text('[{"targets": ["b:1", "b:2"]}]')
    assert one.refresh() and one.addresses == ["a:1", "b:1", "b:2"]
    assert "a.json" in one.watch.problem
    one.refresh()
    assert one.watch.problem, "told as long as it is bad"
    (tmp_path / "a.json").write_text('[{"targets": ["a:2"]}]')
    assert one.refresh() and one.addresses == ["a:2", "b:1", "b:2"] and one.watch.problem == ""


def test_the_links_of_a_config_map_move(tmp_path: Path, watched: Make) -> None:
    for version, address in (("v1", "a:1"), ("v2", "a:2")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "t.json").write_text(json.dumps([{"targets": [address]}]))
    (tmp_path / "data").symlink_to("v1")
    (tmp_path / "t.json").symlink_to("data/t.json")
    one = watched(file_sd=["t.json"])
    assert one.refresh() and one.addresses == ["a:1"]
    (tmp_path / "next").symlink_to("v2")
    os.replace(tmp_path / "next", tmp_path / "data")
    assert one.refresh() and one.addresses == ["a:2"]


# ---------------------------------------------------------------- HTTP


class Answering(ThreadingHTTPServer):
    """Answers every GET with `status` and `body`; remembers the headers it was sent."""

    daemon_threads = True
    status, body = 200, b"[]"
    authorization: str | None = None

    def __init__(self) -> None:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.authorization = self.headers["Authorization"]
                self.send_response(server.status)
                self.send_header("Content-Length", str(len(server.body)))
                self.end_headers()
                self.wfile.write(server.body)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def answering() -> Iterator[Answering]:
    server = Answering()
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_http_sd_keeps_the_last_good_list(tmp_path: Path, watched: Make, answering: Answering) -> None:
    (tmp_path / "token").write_text("s3cr3t\n")
    url = f"http://127.0.0.1:{answering.server_port}/targets"
    one = watched(http_sd={"url": url, "refresh": "1s", "bearer_file": str(tmp_path / "token")})
    answering.body = b'[{"targets": ["a:1"], "labels": {"pod": "p"}}]'
    assert one.refresh() and one.watch.found == (Found("a:1", {"pod": "p"}),)
    assert answering.authorization == "Bearer s3cr3t"
    assert not one.refresh()
    for status, body in ((500, b"oh"), (200, b"<html>"), (200, b'{"targets": []}')):
        answering.status, answering.body = status, body
        assert not one.refresh() and one.addresses == ["a:1"]
        assert one.watch.problem and "s3cr3t" not in one.watch.problem
    answering.status, answering.body = 200, b"[]"
    assert one.refresh() and one.addresses == [] and one.watch.problem == ""


def test_http_sd_that_is_down(watched: Make) -> None:
    one = watched(http_sd={"url": "http://user:hidden@127.0.0.1:9/targets"})
    assert not one.refresh() and "refuses the connection" in one.watch.problem
    assert "hidden" not in one.watch.problem + one.watch.source.name


# ---------------------------------------------------------------- DNS


class NameServer:
    """Answers over UDP from `zone`: (name, type) -> records; a name that is not there does not exist."""

    def __init__(self) -> None:
        self.zone: dict[tuple[str, str], list[str]] = {}
        self.failing = False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.server = f"127.0.0.1@{self._socket.getsockname()[1]}"
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                packet, sender = self._socket.recvfrom(4096)
                query = dns.message.from_wire(packet)
                self._socket.sendto(self._answer(query).to_wire(), sender)

    def _answer(self, query: dns.message.Message) -> dns.message.Message:
        question = query.question[0]
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        key = (str(question.name), question.rdtype.name)
        if self.failing:
            answer.set_rcode(dns.rcode.SERVFAIL)
        elif key in self.zone:
            answer.answer.append(dns.rrset.from_text(question.name, 5, "IN", key[1], *self.zone[key]))
        elif not any(name == key[0] for name, _ in self.zone):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        return answer

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def names() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.close()


def test_addresses_of_a_name(watched: Make, names: NameServer) -> None:
    names.zone = {("vllm.svc.", "A"): ["10.0.0.2", "10.0.0.1"], ("vllm.svc.", "AAAA"): ["fd00::1"]}
    four = watched(dns={"name": "vllm.svc.", "port": 8000, "servers": [names.server]})
    assert four.refresh() and four.addresses == ["10.0.0.1:8000", "10.0.0.2:8000"]
    six = watched(dns={"name": "vllm.svc.", "type": "AAAA", "port": 8000, "servers": [names.server]})
    assert six.refresh() and six.addresses == ["[fd00::1]:8000"]
    names.zone[("vllm.svc.", "A")] = ["10.0.0.3"]
    assert four.refresh() and four.addresses == ["10.0.0.3:8000"]


def test_service_records_bring_their_port(watched: Make, names: NameServer) -> None:
    names.zone = {("vllm.svc.", "SRV"): ["0 1 8001 b.svc.", "0 1 8000 a.svc."]}
    one = watched(dns={"name": "vllm.svc.", "type": "SRV", "servers": [names.server]})
    assert one.refresh() and one.addresses == ["a.svc:8000", "b.svc:8001"]


def test_a_name_that_is_gone_is_an_empty_list(watched: Make, names: NameServer) -> None:
    names.zone = {("vllm.svc.", "A"): ["10.0.0.2"]}
    one = watched(dns={"name": "vllm.svc.", "port": 8000, "servers": [names.server]})
    one.refresh()
    names.zone = {("other.", "A"): ["10.0.0.2"]}
    assert one.refresh() and one.addresses == [] and one.watch.problem == ""


def test_a_name_server_that_fails_keeps_the_list(watched: Make, names: NameServer) -> None:
    names.zone = {("vllm.svc.", "A"): ["10.0.0.2"]}
    one = watched(dns={"name": "vllm.svc.", "port": 8000, "servers": [names.server]})
    one.refresh()
    names.failing = True
    assert not one.refresh() and one.addresses == ["10.0.0.2:8000"]
    assert "dns A vllm.svc." in one.watch.problem
