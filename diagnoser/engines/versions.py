"""Which release wrote a page: told beforehand, or inferred from the names and labels that exist.

No page of either engine carries its version. A release is bounded by features: a name that first appears in some
release proves "at least", a name that every complete page has from some release on proves, by its absence, "before".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

Version = tuple[int, ...]
_NUMBER = re.compile(r"^\D*?(\d+)\.(\d+)(?:\.(\d+))?")
_UNTAGGED = "0.1.dev"
"""What a build without a git tag calls itself: no order in it."""


@lru_cache(1024)
def parse(text: str) -> Version:
    """The numeric part of a release ("0.5.3.post3" -> (0, 5, 3)), or () where there is none that can be ordered."""
    found = None if _UNTAGGED in text else _NUMBER.match(text)
    return tuple(int(part) for part in found.groups() if part is not None) if found else ()


@dataclass(frozen=True, slots=True)
class Feature:
    """A metric (or a label of it) that tells releases apart.

    Present: the release is at least `low`, and before `gone` where that is given. Absent from a complete page: it is
    before `high` (None where absence proves nothing). `low` and `high` differ where a release between was not read.
    """

    metric: str
    low: str
    high: str | None
    label: str = ""
    gone: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Releases a page may come from: `low` <= release < `high`; `text` is what the user is shown."""

    low: Version = ()
    high: Version | None = None
    text: str | None = None

    def before(self, release: str) -> bool:
        """Surely older than `release`."""
        return bool(release) and self.high is not None and self.high <= parse(release)

    def after(self, release: str) -> bool:
        """Surely newer than `release` and its patches."""
        bound = parse(release)
        return bool(bound) and self.low[: len(bound)] > bound

    def inside(self, since: str, until: str) -> bool:
        """Surely at least `since` and at most `until`."""
        last = parse(until)
        after_last = (*last[:-1], last[-1] + 1) if last else None
        return self.low >= parse(since) and (after_last is None or (self.high is not None and self.high <= after_last))


def exact(text: str) -> Span:
    """The span of a release that is known; a text without a number gives bounds to nothing."""
    version = parse(text)
    return Span(version, (*version, 0), text) if version else Span(text=text)


def infer(features: Sequence[Feature], has: Callable[[Feature], bool | None]) -> Span:
    """The span that the features (oldest first) leave open. `has` answers None where the page cannot tell."""
    known = [(feature, present) for feature in features if (present := has(feature)) is not None]
    found = [feature for feature, present in known if present]
    low = max((parse(feature.low) for feature in found), default=())
    highs = [parse(feature.gone) for feature in found if feature.gone]
    absent = [feature for feature, present in known if not present and feature.high]
    if all(parse(feature.high or "") > low for feature in absent):
        highs += [parse(feature.high or "") for feature in absent]
    high = min((bound for bound in highs if bound > low), default=None)
    words = [f">={_dotted(low)}" if low else "", f"<{_dotted(high)}" if high else ""]
    return Span(low, high, " ".join(word for word in words if word) or None)


def _dotted(version: Version) -> str:
    return ".".join(str(part) for part in version)
