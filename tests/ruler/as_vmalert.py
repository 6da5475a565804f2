"""Recordings in a real VictoriaMetrics, and our rules replayed over them by a real vmalert."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml
from fleet.recordings_into import COMMON_END
from prometheus.servers import binary, free_port, victoria

from .as_promtool import Fleet

START = COMMON_END // 60 * 60
"""When page 0 is looked at. It was scraped LAG before, so that no page lies on the edge of a window."""
LAG = 2.3


@dataclass(frozen=True)
class Replayed:
    """A VictoriaMetrics with pages, and then with what rules have made of them."""

    url: str
    fleet: Fleet
    folder: Path

    def replay(self, rules: Sequence[str], pages: Sequence[int]) -> None:
        """Rules that build on others come after them: vmalert has stored all that it replayed only when it ends."""
        for number, stage in enumerate(stages(rules)):
            path = self.folder / f"stage-{number}.yml"
            path.write_text(yaml.safe_dump({"groups": stage}, width=10**6))
            self._replay(path, pages)
            self._flush()

    def _replay(self, rules: Path, pages: Sequence[int]) -> None:
        every = self.fleet.every
        words = [binary("vmalert"), f"-rule={rules}", f"-remoteWrite.url={self.url}"]
        # What is older than a step is gone, as it is in Prometheus, which has markers for that.
        words += [f"-datasource.url={self.url}?max_lookback={every}s&nocache=1", f"-datasource.queryStep={every}s"]
        words += [f"-replay.timeFrom={_iso(pages[0], every)}", f"-replay.timeTo={_iso(pages[-1], every)}"]
        words += ["-replay.rulesDelay=0", "-replay.disableProgressBar", "-disableAlertgroupLabel"]
        words += [f"-httpListenAddr=127.0.0.1:{free_port()}", "-loggerLevel=WARN"]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=240)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def _flush(self) -> None:
        assert httpx.get(f"{self.url}/internal/force_flush", timeout=60, trust_env=False).status_code == 200

    def stored(self, selector: str) -> dict[int, list[dict[str, str]]]:
        """The labels of all series that have a sample at a page, by page."""
        got = httpx.get(f"{self.url}/api/v1/export", params={"match[]": selector}, timeout=60, trust_env=False)
        found: dict[int, list[dict[str, str]]] = defaultdict(list)
        for line in got.text.splitlines():
            series = json.loads(line)
            for stamp in series["timestamps"]:
                found[round((stamp / 1000 - START) / self.fleet.every)].append(series["metric"])
        return found


@contextmanager
def holding(folder: Path, fleet: Fleet) -> Iterator[Replayed]:
    """A server with the fleet's pages."""
    with victoria(folder / "vm") as url:
        lines = [
            f"{series} {value:.17g} {(START + number * fleet.every - LAG) * 1000:.0f}"
            for series, values in fleet.series().items()
            for number, value in values.items()
        ]
        sent = httpx.post(
            f"{url}/api/v1/import/prometheus", content="\n".join(lines) + "\n", timeout=60, trust_env=False
        )
        assert sent.status_code == 204, sent.text
        held = Replayed(url, fleet, folder)
        held._flush()
        yield held


def stages(files: Sequence[str]) -> list[list[dict[str, Any]]]:
    """The groups again and again, with only the rules whose operands the stages before have made.

    Without annotations: ours ask for values, which vmalert's templates cannot in a replay, and nobody would read them.
    """
    groups = [group for text in files for group in yaml.safe_load(text)["groups"]]
    for rule in (rule for group in groups for rule in group["rules"]):
        rule.pop("annotations", None)
    level = _levels([rule for group in groups for rule in group["rules"]])
    return [
        [{**group, "rules": mine} for group in groups if (mine := [r for r in group["rules"] if level[name(r)] == n])]
        for n in range(max(level.values()) + 1)
    ]


def name(rule: Mapping[str, str]) -> str:
    """What a rule makes."""
    return rule.get("record") or f"ALERTS:{rule['alert']}"


def _levels(rules: Sequence[Mapping[str, str]]) -> Mapping[str, int]:
    needs: dict[str, set[str]] = defaultdict(set)
    for rule in rules:
        needs[name(rule)] |= set(re.findall(r"rank:\w+:\w+", rule["expr"])) - {name(rule)}
    level: dict[str, int] = {}

    def of(made: str) -> int:
        if made not in level:
            level[made] = 1 + max((of(other) for other in needs[made] if other in needs), default=-1)
        return level[made]

    return {made: of(made) for made in list(needs)}


def _iso(page: int, every: int) -> str:
    return datetime.fromtimestamp(START + page * every, UTC).isoformat().replace("+00:00", "Z")
