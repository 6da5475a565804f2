"""`diagnose rules list|lint|export`: what the rules are, whether a folder of your own is right, and the same rules for
a metrics server.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.commands.base import Command, add_facts, duration, say_all
from diagnoser.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.rulebook.rules import Rulebook


def options(parser: argparse.ArgumentParser) -> None:
    """Command line."""
    parser.add_argument(
        "action", choices=("list", "lint", "export"), help="list all rules, look for mistakes, or write them as PromQL"
    )
    parser.add_argument("folder", nargs="?", metavar="DIR", help="a folder of your own on top of the shipped rules")
    group = parser.add_argument_group("export")
    group.add_argument(
        "--format",
        default="prometheus",
        choices=("prometheus", "prometheus-operator", "mimir"),
        help="what reads the rules (default prometheus; VictoriaMetrics' vmalert and Thanos' ruler read the same)",
    )
    group.add_argument("-o", "--output", metavar="DIR", help="write files there instead of to stdout")
    group.add_argument("--window", type=duration, default=300.0, metavar="5m", help="what a verdict is about")
    group.add_argument("--interval", type=duration, default=15.0, metavar="15s", help="your scrape interval")
    group.add_argument("--match", action="append", default=[], metavar="'job=\"vllm\"'", help="only these series")
    group.add_argument(
        "--by", default="", metavar="LABELS", help="more labels that tell targets apart: cluster,namespace"
    )
    group.add_argument("--runbooks", default="", metavar="URL", help="where your copy of docs/ is")
    add_facts(parser)


def run(args: argparse.Namespace) -> int:
    """List, or lint: 1 if something is wrong."""
    from diagnoser.commands import setup
    from diagnoser.data import data_dir
    from diagnoser.pipeline import rule_problems
    from diagnoser.rulebook.load import load

    if args.folder is not None and not Path(args.folder).is_dir():
        raise UsageError(
            f"{args.folder}: no such folder; it may hold checks/, remedies/ and *.yaml as the shipped rules do."
        )
    book = load([data_dir("rules"), *([Path(args.folder)] if args.folder else [])])
    problems = rule_problems(book)
    if args.action == "export":
        return _export(args, book)
    if args.action == "lint":
        setup.write("".join(f"{problem}\n" for problem in problems))
        setup.write(f"{_counts(book)}: {len(problems) or 'no'} {'mistake' if len(problems) == 1 else 'mistakes'}.\n")
        return 1 if problems else 0
    setup.write(_listed(book))
    say_all([f"{problem} (skipped)" for problem in book.errors])
    return 0


def _export(args: argparse.Namespace, book: Rulebook) -> int:
    from diagnoser.commands import setup
    from diagnoser.promql.export import RUNBOOKS, Export, files
    from diagnoser.sources.prometheus.selectors import user_matchers

    by = tuple(label.strip() for label in args.by.split(",") if label.strip())
    match, runbooks = user_matchers(args.match), args.runbooks or RUNBOOKS
    export = Export(args.window, args.interval, match, by, setup.facts(args), runbooks)
    found = files(book, export, args.format)
    if args.output is None:
        setup.write("---\n".join(found.values()))
        return 0
    folder = Path(args.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output {folder}: cannot be written ({error.strerror}).") from None
    setup.write("".join(f"{folder / name}\n" for name in found))
    return 0


def _counts(book: Rulebook) -> str:
    parts = {
        "checks": book.checks, "verdicts": book.verdicts, "remedies": book.remedies, "gates": book.gates,
        "thresholds": book.thresholds,
    }  # fmt: skip
    return ", ".join(f"{len(found)} {name}" for name, found in parts.items())


def _listed(book: Rulebook) -> str:
    width = max(len(check.id) for check in book.checks) + 2
    lines = ["checks, in the order of the checklist"]
    lines += [f"  {check.id:<{width}}{check.question}" for check in book.checks]
    lines += ["", "gates, in the order they are looked at"]
    lines += [f"  {gate.id:<{width}}{gate.title}" for gate in book.gates]
    lines += ["", "verdicts, the first that fits counts"]
    lines += [f"  {verdict.id:<{width}}{verdict.headline}" for verdict in book.verdicts]
    lines += ["", "remedies"]
    lines += [f"  {remedy.id:<{width}}{remedy.action}" for remedy in book.remedies.values()]
    lines += ["", f"{_counts(book)}; `diagnose explain ID` tells about each."]
    return "\n".join(lines) + "\n"


COMMAND = Command(
    name="rules",
    summary="Lists the rules, looks for mistakes in yours, exports as PromQL.",
    usage="list|lint|export [DIR]",
    examples=(
        ("diagnose rules list", "every check, gate, verdict and remedy"),
        ("diagnose rules lint my-rules", "mistakes with file and line; exit code 1 if there are any"),
        ("diagnose rules export -o rules/prometheus", "recording and alerting rules, and a test for promtool"),
        ("diagnose rules export --format mimir --by cluster > r.yaml", "for `mimirtool rules load r.yaml`"),
    ),
    options=options,
    run=run,
)
