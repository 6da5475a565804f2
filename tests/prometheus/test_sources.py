"""Grouping series into targets, and samples back into scrapes: the cases that real servers are rarely caught in."""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import Any

import httpx
import pytest

from diagnoser.errors import ServerError, UsageError
from diagnoser.pipeline import wanted_metrics
from diagnoser.sources.prometheus.access import api_url, server_name
from diagnoser.sources.prometheus.api import Series, Server
from diagnoser.sources.prometheus.fetch import Fetched, Span, fetch
from diagnoser.sources.prometheus.pages import scrapes
from diagnoser.sources.prometheus.selectors import instances, names, user_matchers, with_up
from diagnoser.sources.prometheus.targets import Known, Owners, group

PLACE = {"job": "v", "instance": "h:1"}
RUNNING = "vllm:num_requests_running"


def one(name: str = RUNNING, values: Any = ((10.0, 1.0),), **labels: str) -> Series:
    return Series({"__name__": name, **PLACE, **labels}, list(values))


# ---------------------------------------------------------------- targets


def test_the_labels_of_up_are_the_targets() -> None:
    up = {"__name__": "up", **PLACE, "pod": "a", "zone": "z"}
    series = [
        {"__name__": RUNNING, **PLACE, "pod": "a", "zone": "z", "engine": rank, "model_name": "m"} for rank in "01"
    ]
    (found,) = group(series, [up])
    assert found.labels == {**PLACE, "pod": "a", "zone": "z"} and found.has_up and found.name == "h:1"
    assert found.on_page(series[1]) == {"engine": "1", "model_name": "m"}


def test_without_up_what_all_series_carry() -> None:
    series = [{"__name__": RUNNING, **PLACE, "pod": pod, "engine": "0", "model_name": "m"} for pod in "ab"]
    series += [
        {"__name__": "vllm:x", **PLACE, "pod": pod, "engine": "0", "model_name": "m", "odd": "1"} for pod in "ab"
    ]
    found = group(series, [])
    assert [known.labels for known in found] == [{**PLACE, "pod": "a"}, {**PLACE, "pod": "b"}]
    assert [known.name for known in found] == ["h:1 {pod=a}", "h:1 {pod=b}"] and not found[0].has_up


def test_labels_in_each_others_way() -> None:
    """A target label `engine` pushes the page's aside, or gives way to it with honor_labels."""
    known = Known("h:1", {**PLACE, "engine": "vllm"})
    aside = {**PLACE, "engine": "vllm", "exported_engine": "1"}
    honoured, without = {**PLACE, "engine": "1"}, {**PLACE, "engine": "vllm"}
    assert known.on_page(aside) == known.on_page(honoured) == {"engine": "1"}
    assert known.on_page(without) == {}
    assert all(Owners([known]).of(labels) is known for labels in (aside, honoured, without))


def test_one_instance_in_two_jobs_is_two_targets() -> None:
    ups = [{"__name__": "up", "job": job, "instance": "h:1"} for job in "ab"]
    found = group([{**up, "__name__": RUNNING, "engine": "0"} for up in ups], ups)
    assert [known.name for known in found] == ["h:1 {job=a}", "h:1 {job=b}"]


def test_up_of_an_instance_that_has_no_engine_is_no_target() -> None:
    up = {"__name__": "up", **PLACE}
    assert [
        known.labels for known in group([{"__name__": RUNNING, **PLACE}], [up, {**up, "instance": "node:9100"}])
    ] == [PLACE]


def test_series_without_job_and_instance() -> None:
    (found,) = group([{"__name__": RUNNING, "engine": "0", "model_name": "m"}], [])
    assert found.name == "{}" and Owners([found]).of({"__name__": "vllm:x", "engine": "0"}) is found


# ---------------------------------------------------------------- scrapes


KNOWN = Known("h:1", PLACE)


def test_one_scrape_a_stamp() -> None:
    series = [
        one("up", [(10.0, 1), (25.003, 1), (40.0, 0)]),
        one(values=[(10.0, 1), (25.003, 2), (40.0, math.nan)], engine="0"),
        one("vllm:born_later", [(25.007, 5)], engine="0"),
    ]
    first, second, third = scrapes(KNOWN, series, "prom:9090")
    assert [(s.name, s.value) for s in first.samples] == [(RUNNING, 1)]
    assert second.at == 25.003 and [s.value for s in second.samples] == [2, 5], "4 ms apart is one scrape"
    assert third.error == "h:1 could not be scraped by prom:9090 (up is 0 there)." and third.samples == ()


def test_staleness_markers_are_no_page() -> None:
    stale = [one(values=[(10.0, 1), (25.0, math.nan)], engine="0")]
    assert [s.at for s in scrapes(KNOWN, stale, "prom")] == [10.0]


def test_a_single_nan_stays() -> None:
    (scrape,) = scrapes(KNOWN, [one(engine="0"), one("sglang:fwd_occupancy", [(10.0, math.nan)])], "prom")
    assert len(scrape.samples) == 2


def test_a_page_without_engine_series_is_a_failure_unless_the_answer_is_partial() -> None:
    series = [one("up", [(10.0, 1), (25.0, 1)]), one(engine="0")]
    complete = scrapes(KNOWN, series, "prom")
    assert complete[1].error == "h:1 was scraped, but its page had no series of an engine (up is 1)."
    assert [s.at for s in scrapes(KNOWN, series, "prom", complete=False)] == [10.0]


# ---------------------------------------------------------------- text of queries and addresses


def test_names_match_both_spellings_and_nothing_else() -> None:
    matcher = with_up(names({"vllm:num_requests_running", "process_start_time_seconds", "vllm:ttft"}))
    pattern = re.compile(json.loads(matcher.partition("=~")[2]))
    for name in ("up", RUNNING, "vllm_num_requests_running", "vllm:ttft_bucket", "process_start_time_seconds"):
        assert pattern.fullmatch(name)
    for name in ("vllm:other", "num_requests_running", "vllm:ttft_created", "upx", "process_start_time_secondsx"):
        assert not pattern.fullmatch(name)


def test_values_are_quoted() -> None:
    matcher = instances(['[::1]:80"\\', "a.b:1"])
    pattern = re.compile(json.loads(matcher.partition("=~")[2]))
    assert pattern.fullmatch('[::1]:80"\\') and pattern.fullmatch("a.b:1") and not pattern.fullmatch("axb:1")
    assert user_matchers(['{job="a",}', ' pod="b" ', ""]) == 'job="a",pod="b"'


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("prom:9090", "http://prom:9090/api/v1/query"),
        ("http://prom:9090/", "http://prom:9090/api/v1/query"),
        ("https://gw/prometheus/graph?x=1#y", "https://gw/prometheus/api/v1/query"),
        ("http://vm/select/0/prometheus/api/v1/query", "http://vm/select/0/prometheus/api/v1/query"),
        ("http://prom/api/v1", "http://prom/api/v1/query"),
    ],
)
def test_addresses(typed: str, url: str) -> None:
    assert str(api_url(typed)) == url


def test_no_credentials_in_the_name() -> None:
    assert server_name(api_url("http://me:secret@gw:1/p")) == "gw:1/p"
    for bad in ("ftp://prom", "http://", "http://a b", "prom:99999"):
        with pytest.raises(UsageError, match="--prometheus"):
            api_url(bad)


# ---------------------------------------------------------------- batches


class Fleet:
    """A transport that answers for any instance asked for, and refuses what is above its limits."""

    def __init__(self, series: int, most: int) -> None:
        self.series, self.most, self.asked = series, most, list[int]()
        self.at_once = self.peak = 0

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        await asyncio.sleep(0.002)
        self.at_once -= 1
        query = httpx.QueryParams(request.content.decode())["query"]
        found = re.search(r'instance=~"([^"]*)"', query)
        assert found is not None
        hosts = found[1].replace("\\\\", "").split("|")
        share = self.series * query.count("|") // FULL
        self.asked.append(len(hosts))
        if len(hosts) * share > self.most:
            error = {"status": "error", "errorType": "execution", "error": "query would load too many samples"}
            return httpx.Response(422, json=error)
        result = [
            {"metric": {"__name__": f"vllm:x{i}", "job": "v", "instance": host}, "values": [[10, "1"]]}
            for host in hosts
            for i in range(share)
        ]
        return httpx.Response(200, json={"status": "success", "data": {"resultType": "matrix", "result": result}})


METRICS = tuple(sorted(wanted_metrics()))
FULL = (with_up(names(METRICS)) + instances(["h1"])).count("|")


def fetched(fleet: Fleet, hosts: int, max_bytes: int = 1 << 25) -> list[Fetched]:
    found: list[Fetched] = []

    async def work() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(fleet)) as client:
            server = Server(client, "http://prom", max_bytes=max_bytes)
            targets = [Known(f"h{i}", {"job": "v", "instance": f"h{i}"}) for i in range(hosts)]
            await fetch(server, targets, Span(METRICS, 10.0, 5.0), found.append)

    asyncio.run(work())
    return found


def test_batches_are_sized_by_the_first_answer_and_bounded_at_once() -> None:
    fleet = Fleet(series=1600, most=10**9)
    found = fetched(fleet, 300)
    assert len(found) == 300 and all(len(one.scrapes) == 1 for one in found)
    assert fleet.asked[0] == 2 and 5 < len(fleet.asked) < 20
    assert fleet.peak <= 4


def test_what_is_too_much_is_halved() -> None:
    fleet = Fleet(series=400, most=1500)
    found = fetched(fleet, 40)
    assert len(found) == 40 and all(len(one.scrapes) == 1 and one.error is None for one in found)
    assert max(fleet.asked) > 3, "it tried more"


def test_one_target_is_asked_for_in_parts() -> None:
    fleet = Fleet(series=400, most=150)
    (found,) = fetched(fleet, 1)
    assert len(found.scrapes) == 1 and len(found.scrapes[0].samples) >= 100


def test_too_long_answers_are_asked_for_in_parts() -> None:
    found = fetched(Fleet(series=100, most=10**9), 20, max_bytes=30_000)
    assert len(found) == 20 and all(one.error is None for one in found)


def test_what_stays_too_much_is_an_error() -> None:
    with pytest.raises(ServerError, match="too many samples"):
        fetched(Fleet(series=4000, most=5), 1)
