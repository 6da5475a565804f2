"""Recordings as input of `promtool test rules`: Prometheus' own rule evaluation, without waiting for the clock."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from fleet.recordings_into import is_read
from prometheus.conftest import RECORDINGS, bare
from prometheus.servers import binary
from score.scoring import thinned

from diagnoser.sources.recording import RecordedTarget

Times = Mapping[str, dict[int, float]]


@dataclass(frozen=True)
class Fleet:
    """Recordings side by side, each an instance of its own, a page every `every` seconds from the same start."""

    targets: Mapping[str, RecordedTarget]
    every: int

    @classmethod
    def of(cls, names: Iterable[str], every: int) -> Fleet:
        return cls({name: thinned(bare(name), every) for name in names}, every)

    def path(self, name: str) -> Path:
        return RECORDINGS / f"{name}.tar.xz"

    def series(self) -> Times:
        """Values by series and page number."""
        found: defaultdict[str, dict[int, float]] = defaultdict(dict)
        for name, target in self.targets.items():
            own = f'job="llm",instance="{name}"'
            for number, page in enumerate(target.pages()):
                found[f"up{{{own}}}"][number] = float(page.text is not None)
                for line in (page.text or "").splitlines():
                    head, _, value = line.rpartition(" ")
                    if head and is_read(head):
                        metric, _, inner = head.partition("{")
                        labels = ",".join(filter(None, [inner.removesuffix("}").strip(","), own]))
                        found[f"{metric}{{{labels}}}"][number] = float(value)
        return found


def evaluate(
    folder: Path, rules: str, fleet: Fleet, expr: str, pages: Sequence[int]
) -> dict[int, list[dict[str, str]]]:
    """The labels of every series that `expr` gives at these pages. promtool prints what a test did not expect."""
    (folder / "rules.yml").write_text(rules)
    series, step = fleet.series(), f"{fleet.every}s"
    last = max(max(values) for values in series.values())
    test = {
        "interval": step,
        "input_series": [{"series": name, "values": _values(values, last)} for name, values in series.items()],
        "promql_expr_test": [{"expr": expr, "eval_time": f"{n * fleet.every}s", "exp_samples": []} for n in pages],
    }
    (folder / "test.yml").write_text(
        yaml.safe_dump(
            {
                "rule_files": ["rules.yml"],
                "evaluation_interval": step,
                # Each group after those that it builds on; promtool's own order is another one every time.
                "group_eval_order": [group["name"] for group in yaml.safe_load(rules)["groups"]],
                "tests": [test],
            },
            width=10**6,
        )
    )
    ran = subprocess.run(
        [binary("promtool"), "test", "rules", "test.yml"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    return _read(ran.stdout + ran.stderr, fleet.every)


def _values(values: Mapping[int, float], last: int) -> str:
    return " ".join("_" if (v := values.get(n)) is None else "NaN" if v != v else f"{v:.17g}" for n in range(last + 1))


def _read(text: str, every: int) -> dict[int, list[dict[str, str]]]:
    found: dict[int, list[dict[str, str]]] = {}
    for said in re.finditer(r"time: (?:(\d+)m)?(?:(\d+)s)?,\s+exp.*?got:(.*?)(?=\n\s*expr:|\Z)", text, re.DOTALL):
        at = int(said[1] or 0) * 60 + int(said[2] or 0)
        labels = re.findall(r"\{([^}]*)\} 1", said[3])
        found[at // every] = [dict(re.findall(r'(\w+)="([^"]*)"', one)) for one in labels]
    return found
