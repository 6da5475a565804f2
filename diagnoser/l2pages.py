"""Pages of host tiers at addresses of their own, and how they join the engines they serve.

An L2 address that does not answer makes the state of L2 unknown and touches nothing else of the verdict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from diagnoser.errors import UsageError
from diagnoser.model import EngineId, Fact, Scrape, Snapshot, Target, TierState
from diagnoser.sources.base import ParsePage
from diagnoser.tiers import join, read_tier

MAX_AGE_SECONDS = 15.0
"""A page of L2 this old still stands for it: a tier fills and drains slowly, and one lost poll is a hiccup."""
AHEAD_SECONDS = 1.0
"""Pages of one interval are fetched side by side, so that of L2 may arrive just after the engine's."""
_NOBODY = EngineId("", "")


class L2Page:
    """One address of a host tier and its polls, as far back as any window needs."""

    def __init__(self, name: str, keep_seconds: float, shared: bool = False) -> None:
        self.name, self.keep_seconds = name, keep_seconds
        self.shared = shared
        """It serves several of the targets, so its counters are of all of them."""
        self._polls: deque[Scrape] = deque()
        self._seen: dict[tuple[float, EngineId], tuple[Mapping[str, Fact], TierState]] = {}
        """What was read already: every window asks again for all of its pages."""

    def add(self, scrape: Scrape) -> None:
        """Keeps one poll, in time order."""
        self._polls.append(scrape)
        while len(self._polls) > 2 and self._polls[1].at < scrape.at - self.keep_seconds - MAX_AGE_SECONDS:
            self._polls.popleft()
            self._seen = {key: seen for key, seen in self._seen.items() if key[0] >= self._polls[0].at}

    def state(self, snapshot: Snapshot, facts: Mapping[str, Fact]) -> TierState:
        """What the page of that time says of the engine's tier; not known if there is none, with the reason."""
        polls = [p for p in self._polls if snapshot.at - MAX_AGE_SECONDS <= p.at <= snapshot.at + AHEAD_SECONDS]
        page = next((poll for poll in reversed(polls) if poll.error is None), None)
        if page is None:
            why = next((p.error for p in reversed(polls) if p.error), None)
            return TierState("unknown", None, reason=why or f"{self.name} gave no page of L2 at that time")
        known, seen = self._seen.get((page.at, snapshot.engine), (None, None))
        if seen is None or known is not facts:
            seen = read_tier(page.samples, snapshot.engine, {**snapshot.facts, **facts})
            self._seen[(page.at, snapshot.engine)] = facts, seen
        scope = "node" if self.shared and seen.scope == "engine" else seen.scope
        return replace(seen, scope=scope, at=page.at)


def joined(snapshot: Snapshot, pages: Sequence[L2Page], facts: Mapping[str, Fact]) -> Snapshot:
    """The snapshot with what those pages say of its host tier."""
    if not pages or snapshot.l2 is None:
        return snapshot
    return replace(snapshot, l2=join(snapshot.l2, [page.state(snapshot, facts) for page in pages]))


def is_l2_page(scrape: Scrape) -> bool:
    """Does the page show a host tier?"""
    return read_tier(scrape.samples, _NOBODY, {}).presence is True


def read_l2(target: Target, at: float, text: str, parse: ParsePage) -> Scrape:
    """One page of a host tier. An engine's page is refused: it is read as the engine's."""
    page = parse(text)
    scrape = Scrape(target, at, page.samples, None, page.series_total, page.bad_lines)
    if is_l2_page(scrape):
        return scrape
    reason = f"{target.name} answers, but with no metric of a known host tier ({page.series_total} series)"
    return replace(scrape, samples=(), error=reason)


def split_spec(spec: str) -> tuple[str, str]:
    """ "ENGINE=URL" as (engine, url), "URL" as ("", url). UsageError if there is nothing behind the sign."""
    engine, sign, url = spec.partition("=")
    if not sign or "/" in engine.split("://")[-1] or "?" in engine:
        return "", spec
    if not url:
        raise UsageError(f"--l2 {spec!r}: give URL, or ENGINE=URL")
    return engine, url


def assign(
    engines: Iterable[str], pages: Sequence[tuple[str, L2Page]], host: Callable[[str], str]
) -> dict[str, list[L2Page]]:
    """Which pages serve which engine, by names as shown.

    A page given for one engine serves that one. The others serve the engines on their own host; where there are none,
    all engines.
    """
    names = list(engines)
    out: dict[str, list[L2Page]] = {name: [] for name in names}
    for only, page in pages:
        near = [name for name in names if name == only] if only else [n for n in names if host(n) == host(page.name)]
        served = near or ([] if only else names)
        if not served:
            raise UsageError(f"--l2 {only}={page.name}: there is no engine {only!r}; engines are {', '.join(names)}")
        page.shared = len(served) > 1
        for name in served:
            out[name].append(page)
    return out


def host_of(name: str) -> str:
    """The host of "host:port/path", also of "[::1]:8000"."""
    netloc = name.partition("/")[0]
    return netloc.rpartition(":")[0] or netloc
