"""`--l2` live: polled in step with the engines; dead, slow or wrong, it never touches the engine's verdict."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from story import BOOK

from diagnoser.errors import UsageError
from diagnoser.live import Plan, sampler
from diagnoser.model import Diagnosis, L2State
from diagnoser.pipeline import diagnose
from diagnoser.sources.mock import MockEngine
from diagnoser.sources.recording import open_recording

DATA = Path(__file__).parents[1] / "data" / "l2"
SPEED = 50.0
"""The recorded pages are 10 s apart and 50 s long: a second of sampling sees all of them."""


class Playing:
    """Recordings as live pages for the time of a test."""

    def __init__(self, *names: str) -> None:
        self._mocks = [MockEngine(open_recording(DATA / f"{name}.tar.xz").targets[0], speed=SPEED) for name in names]

    def __enter__(self) -> list[str]:
        for mock in self._mocks:
            mock.start()
        return [mock.url.removeprefix("http://").removesuffix("/metrics") for mock in self._mocks]

    def __exit__(self, *_: object) -> None:
        for mock in self._mocks:
            mock.stop()


def sampled(engines: list[str], *l2: str) -> tuple[Diagnosis, ...]:
    async def run() -> tuple[Diagnosis, ...]:
        plan = Plan(window=40.0, interval=5.0, timeout=2.0, speed=SPEED, l2=l2)
        async with sampler(engines, plan) as found:
            await found.run()
            return diagnose(found.windows(), BOOK)

    return asyncio.run(run())


def test_the_page_is_joined() -> None:
    with Playing("vllm-0.32.0", "l2-lmcache-mp-0.5.6-idle") as (engine, cache):
        (found,) = sampled([engine], cache)
    assert found.verdict.bottleneck == "l1"
    assert found.verdict.l2 is L2State.IDLE_SPACE
    assert found.l2 is not None
    assert found.l2.backend == "lmcache_mp"


def test_a_dead_address_makes_only_l2_unknown() -> None:
    with Playing("vllm-0.32.0") as (engine,):
        (found,) = sampled([engine], f"{engine}=127.0.0.1:1")
    assert found.verdict.bottleneck == "l1"
    assert found.verdict.l2 is L2State.UNKNOWN
    assert "127.0.0.1:1" in found.verdict.l2_reason


def test_a_page_that_is_no_tier_is_said() -> None:
    with Playing("vllm-0.32.0", "vllm-0.32.0") as (engine, other):
        (found,) = sampled([engine], other)
    assert found.verdict.bottleneck == "l1"
    assert "no metric of a known host tier" in found.verdict.l2_reason


def test_what_cannot_be_joined_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="there is no engine"):
        sampled(["127.0.0.1:1"], "127.0.0.1:2=127.0.0.1:3")
    with pytest.raises(UsageError, match="given as an engine"):
        sampled(["127.0.0.1:1"], "127.0.0.1:1")
