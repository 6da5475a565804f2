"""Writes what is derived under deploy/: `python deploy/build.py`.

compose/rules: our rules with a short window, and alerts that fire within seconds. kubernetes: the PrometheusRule, and
copies of the dashboards, since kustomize reads nothing outside of its folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from diagnoser.data import data_dir
from diagnoser.promql.export import ALERTS, RECORDING, Export, files
from diagnoser.rulebook.load import load

FOLDER = Path(__file__).parent
DASHBOARDS = FOLDER.parent / "dashboards"
DEMO = Export(window=30.0, interval=2.0)
"""A recording of a minute, played over and over, has no five minutes."""
HOLD = "10s"


def made() -> Mapping[str, str]:
    """Paths below deploy/ and their text."""
    book = load([data_dir("rules")])
    demo, rule = files(book, DEMO), files(book, Export(), "prometheus-operator")
    alerts = re.sub(r"(?m)^( +)for: \w+$", rf"\1for: {HOLD}", demo[ALERTS])
    boards = {f"kubernetes/dashboards/{path.name}": path.read_text() for path in sorted(DASHBOARDS.glob("*.json"))}
    (resource,) = rule.values()
    return {
        f"compose/rules/{RECORDING}": demo[RECORDING],
        f"compose/rules/{ALERTS}": alerts,
        "kubernetes/prometheusrule.yaml": resource,
        **boards,
    }


def main() -> None:
    """Write them."""
    for name, text in made().items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
