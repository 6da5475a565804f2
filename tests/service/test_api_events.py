"""Server-sent events over real sockets: what a client sees, also when it is slow, comes back, or must go."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from diagnoser.service.api.tokens import hash_of, new_token
from service.web_kit import BOUND, HEALTHY, TWO_RANKS, Web, named, recorded, serve

ONE, CALM = "10.0.3.7:8000/0", "10.0.3.8:30000/0"
EVENTS = "/api/v1/events"


def start() -> list[Any]:
    return [named(recorded(BOUND, 60)[0], "10.0.3.7:8000"), named(recorded(HEALTHY)[0], "10.0.3.8:30000")]


def better(at: float = 1795976300.0) -> Any:
    return named(recorded(HEALTHY)[0], "10.0.3.7:8000", at)


class Reader:
    """Reads events one at a time: (name, id, data); a comment is ("", "", text)."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        self._lines = answer.iter_lines()
        assert next(self._lines) == "retry: 2000" and next(self._lines) == ""

    def next(self) -> tuple[str, str, Any]:
        fields = {}
        for line in self._lines:
            if not line:
                break
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        if "event" not in fields:
            return "", "", fields.get("")
        return fields["event"], fields["id"], json.loads(fields["data"])

    def until(self, name: str) -> tuple[str, str, Any]:
        while True:
            found = self.next()
            if found[0] == name:
                return found


@contextlib.contextmanager
def reading(web: Web, query: str = "", **headers: str) -> Iterator[Reader]:
    with web.client.stream("GET", f"{EVENTS}{query}", headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        yield Reader(answer)


def test_fleet_first_then_what_changes() -> None:
    with serve() as web:
        web.evaluated(*start())
        with reading(web) as reader:
            name, first_id, fleet = reader.next()
            assert name == "fleet" and fleet["ids"] == [ONE, CALM] and fleet["complete"] is True
            web.evaluated(better())
            _, _, changed = reader.until("verdict")
            assert (changed["id"], changed["bottleneck"]) == (ONE, "none")
            _, last_id, transition = reader.until("transition")
            assert (transition["engine"], transition["before"], transition["after"]) == (ONE, "l1/preempting", "none")
            assert last_id != first_id


def test_engine_that_leaves_is_told() -> None:
    with serve() as web:
        web.evaluated(*start())
        with reading(web) as reader:
            reader.next()

            async def drop() -> None:
                web.world.board.drop([web.world.board.entries()[0].key])

            web.do(drop())
            assert reader.until("removed")[2] == {"id": ONE}


def test_filtered_stream() -> None:
    with serve() as web:
        web.evaluated(*start())
        with reading(web, "?bottleneck=l1") as reader:
            assert reader.next()[2]["ids"] == [ONE]
            web.evaluated(better())
            assert reader.until("removed")[2] == {"id": ONE}


def test_coming_back_tells_only_what_was_missed() -> None:
    with serve() as web:
        web.evaluated(*start())
        with reading(web) as reader:
            _, seen, _ = reader.next()
        web.evaluated(better())
        with reading(web, **{"Last-Event-ID": seen}) as reader:
            _, _, fleet = reader.next()
            assert fleet["complete"] is False and [one["id"] for one in fleet["engines"]] == [ONE]
            assert fleet["ids"] and len(fleet["ids"]) == 2
            name, _, missed = reader.next()
            assert name == "transition" and missed["after"] == "none"


def test_coming_back_to_a_service_that_was_restarted(tmp_path: Path) -> None:
    with serve(history=tmp_path / "h.db") as web:
        web.evaluated(*start())
        with reading(web) as reader:
            _, seen, _ = reader.next()
        web.evaluated(better())
    with serve(history=tmp_path / "h.db") as web:
        web.evaluated(better(1795976400.0), start()[1])
        with reading(web, **{"Last-Event-ID": seen}) as reader:
            _, _, fleet = reader.next()
            assert fleet["complete"] is True and len(fleet["engines"]) == 2
            name, _, missed = reader.next()
            assert (name, missed["engine"], missed["after"]) == ("transition", ONE, "none")


def test_comments_show_that_it_lives() -> None:
    with serve() as web:
        web.server.app.state.events.heartbeat = 0.05
        with reading(web) as reader:
            reader.next()
            assert reader.next() == ("", "", "still here")


def test_slow_reader_harms_nobody() -> None:
    """It takes nothing, gets megabytes of changes, and another client sees each of them at once."""
    many = [named(one, f"10.0.9.{i}:8000") for i in range(200) for one in recorded(TWO_RANKS)]
    calm = [named(recorded(HEALTHY)[0], one.engine.target, one.at + 5) for one in many[::2]]
    with serve() as web, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", int(web.url.rpartition(":")[2])))
        slow.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        web.evaluated(*many)
        with reading(web, "?target=10.0.9.0:8000") as reader:
            reader.next()
            for turn in range(6):
                web.evaluated(*(calm if turn % 2 == 0 else many))
                assert reader.until("verdict")[2]["bottleneck"] == ("none" if turn % 2 == 0 else "l1")
            assert web.json("/healthz") == {"status": "ok"}


def test_no_more_clients_than_allowed() -> None:
    with serve({"max_events": 1}) as web, reading(web) as reader:
        reader.next()
        refused = web.get(EVENTS)
        assert refused.status_code == 503 and refused.headers["Retry-After"]
        assert "diagnoser_event_clients 1.0" in web.get("/metrics").text


def test_token_that_is_taken_away_ends_the_stream(tmp_path: Path) -> None:
    token, file = new_token(), tmp_path / "tokens.yaml"
    entry = "tokens:\n- {name: %s, hash: '%s', scopes: [read]}\n"
    file.write_text(entry % ("page", hash_of(token)))
    with serve({"tokens_file": str(file)}) as web:
        web.server.app.state.events.heartbeat = 0.05
        with reading(web, Authorization=f"Bearer {token}") as reader:
            reader.next()
            file.write_text(entry % ("another", hash_of(new_token())))
            while reader.next()[2] is not None:
                pass


def test_stream_ends_after_the_time_asked_for_and_with_the_service() -> None:
    with serve() as web:
        with reading(web, "?seconds=0.05") as reader:
            reader.next()
            assert reader.next() == ("", "", None)
        with contextlib.ExitStack() as stack:
            reader = stack.enter_context(reading(web))
            reader.next()
            began = time.monotonic()
            web.do(web.server.stop(30.0))
            assert reader.next() == ("", "", None) and time.monotonic() - began < 20
