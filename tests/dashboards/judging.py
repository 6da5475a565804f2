"""What is wrong with panels as Grafana's libraries show them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

from story import BOOK

from diagnoser.model import L2State
from diagnoser.promql.export import RUNBOOKS
from diagnoser.service.api.models import BOTTLENECKS

ROOT = Path(__file__).parents[2]
Boards = Mapping[str, Mapping[str, Any]]
GATES = {gate.gate for gate in BOOK.gates}
DROPPED = {f"dropped, {reason}" for reason in ("host_pressure", "write_through_unbacked_eviction")}
POSSIBLE = {
    "{{bottleneck}}": set(BOTTLENECKS), "{{state}}": {state.value for state in L2State}, "{{gate}}": GATES,
    "dropped, {{reason}}": DROPPED, "bottleneck": set(BOTTLENECKS), "l2": {state.value for state in L2State},
}  # fmt: skip
"""Names of series that a legend, or a grouped column, can make; no recording has all of them."""
UGLY = re.compile(r"NaN|Infinity|undefined|null|\[object|\d\.\d{5}|\de-|\dE-|\$\{|\{\{")
GOOD = ("#73BF69", "green")
RAW = re.compile(r"_|#|^Value|^Time$|=|\{")
"""A label's or a metric's name instead of a word."""


@dataclass(frozen=True)
class Seen:
    """One panel, with the data of one engine rank or of all."""

    uid: str
    who: str
    panel: Mapping[str, Any]
    result: Mapping[str, Any]

    @property
    def where(self) -> str:
        """For complaints."""
        return f"{self.uid}: {self.panel['title']} ({self.who})"

    @property
    def kind(self) -> str:
        """Of panel."""
        return str(self.panel["type"])

    def fields(self) -> Iterator[Mapping[str, Any]]:
        """Of all frames, without those that are hidden."""
        for frame in self.result["frames"]:
            yield from (one for one in frame["fields"] if not one["config"].get("custom", {}).get("hidden"))

    def series(self) -> list[Mapping[str, Any]]:
        """What a chart draws."""
        return [one for one in self.fields() if one["type"] != "time" and self.kind != "table"]


def lost(seen: Seen) -> Iterator[str]:
    """Nothing is left although there was something."""
    had = any(seen.result["before"])
    has = any(frame["length"] and frame["fields"] for frame in seen.result["frames"])
    if had and not has:
        yield f"{seen.where}: transformations drop everything"


def unspoken(every: Iterable[Seen]) -> Iterator[str]:
    """Names in transformations that no recording has at that step."""
    known: dict[tuple[str, int], set[str]] = defaultdict(set)
    named: dict[tuple[str, int], set[str]] = {}
    for seen in every:
        for place, step in enumerate(seen.panel.get("transformations") or []):
            key = (f"{seen.uid}: {seen.panel['title']}", place)
            known[key] |= {name for frame in seen.result["speaking"][place] for name in frame}
            options = step["options"]
            named[key] = set(options.get("fields", {})) | {
                name for part in ("excludeByName", "renameByName", "indexByName") for name in options.get(part, {})
            }
            named[key] |= {one["targetField"] for one in options.get("conversions", [])}
    for key, names in named.items():
        if names - known[key]:
            yield f"{key}: no {sorted(names - known[key])} among {sorted(known[key])}"


def unmatched(every: Iterable[Seen]) -> Iterator[str]:
    """Overrides that match nothing in any recording, and never could."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    possible: dict[tuple[str, str], set[str]] = defaultdict(set)
    for seen in every:
        grouped = [name for one in seen.panel.get("transformations") or [] for name in one["options"].get("fields", {})]
        names = {str(one.get("legendFormat")) for one in seen.panel["targets"]} | set(grouped)
        for override, found in zip(seen.panel["fieldConfig"]["overrides"], seen.result["matched"], strict=True):
            key = (f"{seen.uid}: {seen.panel['title']}", override["matcher"]["options"])
            counts[key] += found
            possible[key] |= {each for name in names for each in POSSIBLE.get(name, ())}
    for (where, name), found in counts.items():
        if not found and name not in possible[where, name]:
            yield f"{where}: the override of {name!r} matches nothing"


def unreadable(seen: Seen) -> Iterator[str]:
    """Columns and legends without a name for people, and values that nobody would write."""
    named = list(seen.fields()) if seen.kind == "table" else seen.series()
    if seen.kind == "stat":
        named = []  # one number, without its name
    told = [str(one["shown"]) for one in named]
    people = {one for names in POSSIBLE.values() for one in names if one in BOTTLENECKS or one in GATES}
    for name in told:
        if RAW.search(name) and name not in people and not re.search(r"/\d+$", name):
            yield f"{seen.where}: {name!r} is no name for people"
    if len(told) != len(set(told)):
        yield f"{seen.where}: names occur twice: {sorted(told)}"
    for one in seen.fields():
        for row in one["rows"]:
            if UGLY.search(row["text"]) and one["type"] != "string":
                yield f"{seen.where}: {one['shown']} shows {row['text']!r} for {row['value']!r}"
    for number in seen.result["numbers"] or []:
        if number["text"] == "unknown" and number["color"] in GOOD:
            yield f"{seen.where}: unknown has the colour of what is well"
        if UGLY.search(number["text"]):
            yield f"{seen.where}: shows {number['text']!r}"


def alike(seen: Seen) -> Iterator[str]:
    """Lines of the same colour that are not the two edges of one range."""
    if seen.kind == "timeseries":
        edges = {
            (one["shown"].removesuffix(", at least").removesuffix(", at most"), one["mode"]) for one in seen.series()
        }
        counts = Counter(colour for _, colour in edges)
        yield from (f"{seen.where}: {count} lines are {colour}" for colour, count in counts.items() if count > 1)


def repeated(seen: Seen) -> Iterator[str]:
    """Rows of a table that a person cannot tell apart."""
    if seen.kind == "table":
        cells = [[row["text"] for row in one["rows"]] for one in seen.fields()]
        counts = Counter(zip(*cells, strict=True))
        yield from (f"{seen.where}: {row} occurs {count} times" for row, count in counts.items() if count > 1)


def unmapped(seen: Seen) -> Iterator[str]:
    """Codes that show as numbers, and states without a colour."""
    for one in seen.fields():
        shown = {text for mapping in one["config"].get("mappings") or [] for text in _texts(mapping)}
        if not shown or one["type"] == "time" or seen.kind == "stat":
            continue
        for row in one["rows"]:
            if row["text"] and row["text"] not in shown:
                yield f"{seen.where}: {one['shown']} shows {row['text']!r} for {row['value']!r}"
            if row["value"] is not None and seen.kind == "state-timeline" and not row["color"]:
                yield f"{seen.where}: {row['text']} has no colour"


def _texts(mapping: Mapping[str, Any]) -> Iterator[str]:
    options = mapping["options"]
    results = [options["result"]] if mapping["type"] in ("range", "special") else options.values()
    yield from (str(result["text"]) for result in results)


def anchors(page: Path) -> set[str]:
    """Of a page of docs: named ones, and those of its headings."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return set(re.findall(r'<a id="([\w-]+)">', text)) | {
        re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings
    }


def dangling(boards: Boards, address: str) -> str:
    """What is wrong with a link, after interpolation; empty if it leads somewhere."""
    if UGLY.search(address):
        return f"{address} is not filled in"
    found = urlparse(address)
    if address.startswith("/d/"):
        uid = found.path.removeprefix("/d/")
        if uid not in boards:
            return f"{address}: no such dashboard"
        known = {f"var-{one['name']}" for one in boards[uid]["templating"]["list"]} | {"from", "to"}
        asked = parse_qs(found.query, keep_blank_values=True)
        empty = [name for name, values in asked.items() if not values[0]]
        unknown = sorted(set(asked) - known)
        return f"{address}: {unknown} unknown, {empty} empty" if unknown or empty else ""
    if not address.startswith(f"{RUNBOOKS}/"):
        return f"{address} leads out"
    page = ROOT / "docs" / address.removeprefix(f"{RUNBOOKS}/").partition("#")[0]
    if not page.is_file():
        return f"{address}: no such page"
    return f"{address}: no such place" if found.fragment and found.fragment not in anchors(page) else ""


def broken(boards: Boards, seen: Seen) -> Iterator[str]:
    """Links of cells."""
    yield from (f"{seen.where}: {one} is not filled in" for one in set(seen.result["missing"]))
    addresses = {link["href"] for one in seen.fields() for row in one["rows"] for link in row["links"]}
    yield from (
        f"{seen.where}: {words}" for words in map(lambda one: dangling(boards, one), sorted(addresses)) if words
    )


def unbanded(seen: Seen) -> Iterator[str]:
    """Ranges that are filled down to a line which is not there."""
    shown = {one["shown"] for one in seen.series()}
    for one in seen.series():
        below = one["config"].get("custom", {}).get("fillBelowTo")
        if below and below not in shown:
            yield f"{seen.where}: {one['shown']} is filled down to {below!r}, which is not there"


def complaints(boards: Boards, every: Sequence[Seen]) -> list[str]:
    """All."""
    out = [*unspoken(every), *unmatched(every)]
    for seen in every:
        for judge in (lost, unreadable, alike, repeated, unmapped, unbanded):
            out += judge(seen)
        out += broken(boards, seen)
    return out


def steps_of(panel: Mapping[str, Any]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Thresholds of the panel and of its overrides."""
    yield panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    for override in panel["fieldConfig"]["overrides"]:
        yield from (one["value"]["steps"] for one in override["properties"] if one["id"] == "thresholds")


def units_of(panel: Mapping[str, Any]) -> set[str]:
    """Of the panel and of its overrides."""
    own = {
        one["value"] for each in panel["fieldConfig"]["overrides"] for one in each["properties"] if one["id"] == "unit"
    }
    return {panel["fieldConfig"]["defaults"]["unit"], *own}


def colours_of(node: Any) -> set[str]:
    """All colours named below."""
    if isinstance(node, Mapping):
        own = {node[key] for key in ("color", "fixedColor") if isinstance(node.get(key), str)}
        return own.union(*map(colours_of, node.values()))
    return set().union(*map(colours_of, node)) if isinstance(node, list) else set()
