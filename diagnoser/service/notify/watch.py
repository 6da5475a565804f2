"""What one receiver is to know of one engine rank: `for` before it is told, and as long before it is taken back.

Pure: observations in, what should be told out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple


class State(NamedTuple):
    """What an alert is about; a change of it is another alert."""

    bottleneck: str
    severity: str


Seen = State | Literal["good", "blind"]
"""One observation: a verdict that the route wants, none of those, or nothing that can be said ("unknown")."""


@dataclass(frozen=True, slots=True)
class Watch:
    """`told` is what the receiver knows (None: nothing). `since` times are unix seconds.

    `bad_since`: a wanted verdict, whichever, holds since then; `state_since`: this one does.
    """

    told: State | None = None
    state: State | None = None
    state_since: float = 0.0
    bad_since: float | None = None
    good_since: float | None = None
    want: State | None = field(default=None)
    """What the receiver should know now."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that something must last before it is told, and be gone before it is taken back."""

    hold: float
    resolve_after: float


def step(watch: Watch, seen: Seen, since: float, now: float, times: Times) -> Watch:
    """The watch after one more observation. `since` is when the verdict began, which may be before we looked.

    A verdict that lasts is told; another one takes its place once that lasts; any mixture of bad verdicts that lasts is
    told as the present one. Blindness takes nothing back: "unknown" is not "over".
    """
    if seen == "blind":
        return replace(watch, want=watch.told)
    if seen == "good":
        good = min(since, now) if watch.good_since is None else watch.good_since
        over = watch.told is not None and now - good >= times.resolve_after
        want = None if over else watch.told
        return replace(watch, state=None, bad_since=None, good_since=good, want=want)
    assert isinstance(seen, State)
    began = min(since, now)
    if watch.state != seen:
        first = began if watch.bad_since is None else watch.bad_since
        watch = replace(watch, state=seen, state_since=began, bad_since=first)
    watch = replace(watch, good_since=None)
    return replace(watch, want=_wanted(watch, seen, now, times))


def _wanted(watch: Watch, seen: State, now: float, times: Times) -> State | None:
    start = watch.state_since if watch.told is not None else watch.bad_since
    lasts = start is not None and now - start >= times.hold
    return seen if lasts else watch.told
