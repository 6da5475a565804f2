"""Prometheus text exposition 0.0.4 and OpenMetrics: page -> samples of the wanted metrics.

A series is spelled the same on every page of one engine, so the text before the value is looked up, not parsed
(Prometheus' scrape cache does the same). What is left of a repeated page is one dict lookup and one float() a line.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from sys import intern

from prometheus_client.parser import text_string_to_metric_families

from diagnoser.model import Sample
from diagnoser.sources.base import GENERIC_PREFIXES, ParsedPage

__all__ = ["PageParser", "ParsedPage"]

_Series = tuple[str, dict[str, str] | None]
"""(name, labels); labels are None for a series nobody wants."""

_COMMENT: _Series = ("#", None)
_SUFFIXES = ("_total", "_bucket", "_sum", "_count")
_MAX_OTHER_NAMES = 5
_MIN_CACHE = 2048
"""Series remembered in any case, so that small pages never evict."""

# Possessive (*+, ++): a hostile line costs linear time.
_SERIES = re.compile(
    r"""(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*+)?+ (?: [ \t]*+ (?P<labels>\{ (?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+ \}) )?+""",
    re.VERBOSE | re.DOTALL,
)
# value [timestamp] [# exemplar]; the exemplar is skipped.
_VALUE = re.compile(r"[ \t]*+([^ \t#]++)(?:[ \t]++([^ \t#]++))?+(?:[ \t]++#[ \t]*+\{.*+)?+", re.DOTALL)
# Labels as every client library writes them; whatever else the format allows is left to prometheus_client.
_LABEL = r'((?!__)[a-zA-Z_][a-zA-Z0-9_]*+)="([^"\\]*+)"(?:,|$)'
_ONE_LABEL, _ALL_LABELS = re.compile(_LABEL), re.compile(f"(?:{_LABEL})*+")
_new = tuple.__new__  # half the cost of Sample(...), which is a third of a repeated page
_NOT_UTF8 = re.compile("[\ud800-\udfff]")


class PageParser:
    """Reads pages of one target and remembers its series from page to page. Not for use by several threads at once.

    `wanted` holds metric base names with a colon ("vllm:num_requests_waiting") or plain ones; on the page a name may
    spell its colon "_" and end in _total, _bucket, _sum or _count. `_created` series are dropped.
    """

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = {
            spelling for name in wanted for spelling in (name, name.replace(":", "_", 1), name.replace(":", "_"))
        }
        prefixes = {name.partition(":")[0] for name in wanted if ":" in name}
        self._prefixes = tuple(prefix + mark for prefix in sorted(prefixes) for mark in ":_")
        self._known: dict[str, _Series] = {}

    def parse(self, text: str) -> ParsedPage:
        """Read one page. Never raises: what cannot be read is counted in `bad_lines`."""
        lines = text.split("\n")  # not splitlines(): label values may hold other line separators
        # The format ends every line with a newline. Without one the page may be cut inside a number.
        bad = 0 if lines.pop().strip() in ("", "# EOF") else 1
        series: list[_Series] = []
        values: list[str] = []
        known, new = self._known, False
        for line in lines:
            head, _, tail = line.rpartition(" ")
            found = known.get(head)
            if found is None:
                new = True
                read = self._read(line)
                if read is None:
                    bad += 1
                    continue
                found, tail = read
            if found is not _COMMENT:
                series.append(found)
                values.append(tail)
        if new and len(known) > max(_MIN_CACHE, 2 * len(lines)):
            self._forget(lines)
        return self._page(series, values, bad)

    def _page(self, series: list[_Series], values: list[str], bad: int) -> ParsedPage:
        numbers, kept = _numbers(values), series
        if numbers is None:
            one_by_one = [_number(text) for text in values]
            kept = [entry for entry, number in zip(series, one_by_one, strict=True) if number is not None]
            numbers = [number for number in one_by_one if number is not None]
            bad += len(series) - len(kept)
        pairs = zip(kept, numbers, strict=True)
        samples = [_new(Sample, (name, labels, value)) for (name, labels), value in pairs if labels is not None]
        return ParsedPage(tuple(samples), len(kept), bad, self._other_names(kept))

    def _read(self, line: str) -> tuple[_Series, str] | None:
        """(series, text of its value) of an unknown line; (_COMMENT, "") for comments and blanks; None if unreadable.

        Only here the cache grows. A key is what the grammar ends by itself (a name, a closed label set, a comment's
        start), so a later line that starts with the key and a blank holds that series and nothing else.
        """
        head = line.rpartition(" ")[0]
        line = line.strip()
        if not line or line[0] == "#":
            if head[:1] == "#":
                self._known[head] = _COMMENT
            return _COMMENT, ""
        match = _SERIES.match(line)
        rest = None if match is None else _VALUE.fullmatch(line, match.end())
        if match is None or rest is None or _NOT_UTF8.search(line) or not _separated(match, line):
            return None
        if _number(rest[1]) is None or (rest[2] is not None and _number(rest[2]) is None):
            return None
        found = self._known.get(match[0]) or self._series(match)
        if found is not None:
            self._known[match[0]] = found
        return None if found is None else (found, rest[1])

    def _series(self, match: re.Match[str]) -> _Series | None:
        if match["name"] and not self._is_wanted(match["name"]):
            return intern(match["name"]), None
        read = _plain_series(match) or _any_series(match[0])
        if read is None:
            return None
        name, labels = intern(read[0]), {intern(key): intern(value) for key, value in read[1].items()}
        return (name, labels) if self._is_wanted(name) else (name, None)

    def _is_wanted(self, name: str) -> bool:
        if name in self._wanted:
            return not name.endswith("_created")
        return any(name.endswith(suffix) and name.removesuffix(suffix) in self._wanted for suffix in _SUFFIXES)

    def _other_names(self, series: list[_Series]) -> tuple[str, ...]:
        for name, labels in series:
            if name.startswith(self._prefixes) or (labels is not None and not name.startswith(GENERIC_PREFIXES)):
                return ()
        names = list(dict.fromkeys(name for name, _ in series))
        names.sort(key=lambda name: name.startswith(GENERIC_PREFIXES))  # stable: the telling names first
        return tuple(names[:_MAX_OTHER_NAMES])

    def _forget(self, lines: list[str]) -> None:
        """Keep only what this page holds. Labels that come and go would fill the memory."""
        heads = (line.rpartition(" ")[0] for line in lines)
        self._known = {head: self._known[head] for head in heads if head in self._known}


def _plain_series(match: re.Match[str]) -> tuple[str, dict[str, str]] | None:
    """(name, labels) of a series as every client library writes it, None if it is spelled in any other way."""
    inner = (match["labels"] or "{}")[1:-1]
    if not match["name"] or not _ALL_LABELS.fullmatch(inner):
        return None
    pairs = _ONE_LABEL.findall(inner)
    labels = dict(pairs)
    return (match["name"], labels) if len(labels) == len(pairs) else None  # a label given twice is an error


def _any_series(text: str) -> tuple[str, dict[str, str]] | None:
    """(name, labels) by prometheus_client: escapes, quoted UTF-8 names, blanks; None if it cannot read the series.

    Its parsers of one line are private. The public one takes a page, so it is given a page of one line, which is too
    slow for every series of a new page but not for the unusual ones.
    """
    try:
        (family,) = text_string_to_metric_families(text + " 0\n")
        (sample,) = family.samples
    except (ValueError, IndexError):  # IndexError: what it says to an empty label name
        return None
    return sample.name, sample.labels


def _separated(match: re.Match[str], line: str) -> bool:
    """A name without labels needs a blank behind it; a label set alone must be there if the name is not."""
    if match["labels"] is not None:
        return True
    return match["name"] is not None and line[match.end()] in " \t"  # a value follows: _VALUE has matched


def _numbers(values: list[str]) -> list[float] | None:
    """All values at once, None if one of them is no number. float() reads "1_0", the format does not."""
    try:
        return None if "_" in "".join(values) else list(map(float, values))
    except ValueError:
        return None


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
