"""Reads the rule folders: the shipped one, then the user's own on top.

A bad file is reported and skipped, the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from diagnoser.errors import RuleError
from diagnoser.model import L2State, Severity
from diagnoser.rulebook.conditions import OPS, CheckIs, Compare, Condition, Join, Not
from diagnoser.rulebook.rules import Check, Gate, RemedyRule, Rulebook, Threshold, VerdictRule
from diagnoser.rulebook.yamlfile import LINE, Entry, read

KINDS = ("data", "checklist", "look-alike", "finding")
SEVERITIES = ("info", "warning", "critical")
TOPICS = {"l2": tuple(state.value for state in L2State), "more_l2": ("yes", "no", "unknown")}
"""What a check may settle, and the values."""


class _Reader:
    """Collects rules and errors over the folders; later folders override by id."""

    def __init__(self) -> None:
        self.thresholds: dict[str, Threshold] = {}
        self.gates: tuple[Gate, ...] = ()
        self.checks: dict[str, Check] = {}
        self.verdicts: tuple[VerdictRule, ...] = ()
        self.remedies: dict[str, RemedyRule] = {}
        self.errors: list[RuleError] = []

    def folder(self, root: Path) -> None:
        """Everything below one rules folder but its thresholds, which `numbers` reads before any condition."""
        self._guard(root / "gates.yaml", self._gates)
        for path in sorted((root / "checks").glob("*.yaml")):
            self._guard(path, self._check)
        for path in sorted((root / "remedies").glob("*.yaml")):
            self._guard(path, self._remedy)
        self._guard(root / "verdicts.yaml", self._verdicts)

    def numbers(self, root: Path) -> None:
        """The folder's thresholds."""
        self._guard(root / "thresholds.yaml", self._thresholds)

    def _guard(self, path: Path, into: Callable[[Path], None]) -> None:
        if not path.is_file():
            return
        try:
            into(path)
        except RuleError as error:
            self.errors.append(error)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            self.errors.append(RuleError(str(path), f"holds a value of the wrong kind ({error})"))

    # ---- thresholds

    def _thresholds(self, path: Path) -> None:
        for name, raw in Entry(read(path), path, "thresholds").raw.items():
            try:
                self.thresholds[name] = self._threshold(Entry(raw, path, f"threshold {name}"), name)
            except RuleError as error:
                self.errors.append(error)

    def _threshold(self, entry: Entry, name: str) -> Threshold:
        old = self.thresholds.get(name)
        value = entry.get("value")
        numbers = [v for v in (value if isinstance(value, list) else [value])]
        if not numbers or not all(isinstance(v, int | float) for v in numbers):
            raise entry.fail("needs `value`, a number or a list of numbers")
        unit = entry.text("unit", old.unit if old else None)
        reason = entry.text("reason", old.reason if old else None)
        entry.done()
        return Threshold(name, tuple(map(float, numbers)) if isinstance(value, list) else float(value), unit, reason)

    # ---- conditions

    def condition(self, raw: Any, entry: Entry, checks: bool = False) -> Condition:
        """A condition tree; `checks` says whether leaves ask for checks or for signals."""
        node = Entry(raw, entry.path, entry.what, entry.line)
        for how in ("all", "any"):
            if how in node.raw:
                items = node.get(how)
                if not isinstance(items, list):
                    raise node.fail(f"`{how}` must be a list of conditions")
                out: Condition = Join(how, tuple(self.condition(item, entry, checks) for item in items))
                node.done()
                return out
        if "not" in node.raw:
            out = Not(self.condition(node.get("not"), entry, checks))
            node.done()
            return out
        return self._check_leaf(node) if checks else self._signal_leaf(node)

    def _check_leaf(self, node: Entry) -> CheckIs:
        leaf = CheckIs(node.text("check"), node.one_of("is", ("yes", "no", "unknown")))
        node.done()
        return leaf

    def _signal_leaf(self, node: Entry) -> Compare:
        signal, op = node.text("signal"), node.one_of("op", OPS)
        name, value = node.get("threshold"), node.get("value")
        node.done()
        if name is not None:
            threshold = self.thresholds.get(name)
            if threshold is None or isinstance(threshold.value, tuple):
                raise node.fail(f"threshold {name!r} is not in thresholds.yaml, or is a list")
            return Compare(signal, op, threshold.value, name)
        if value not in (0, 1):
            raise node.fail("compares with `threshold: NAME`; only 0 and 1 may stand as a bare `value`")
        return Compare(signal, op, float(value))

    def _optional(self, key: str, entry: Entry, checks: bool = False) -> Condition | None:
        raw = entry.get(key)
        return None if raw is None else self.condition(raw, entry, checks)

    # ---- gates, checks, remedies, verdicts

    def _gates(self, path: Path) -> None:
        found = []
        for raw in _list(read(path), "gates", path):
            entry = Entry(raw, path, "gate")
            entry.what = f"gate {entry.text('id')}"
            found.append(
                Gate(
                    entry.text("id"),
                    entry.text("gate", entry.text("id")),
                    entry.text("title"),
                    self._optional("when", entry),
                    entry.get("whole", "false") == "true",
                    entry.text("reason"),
                )
            )
            entry.done()
        self.gates = tuple(found)

    def _check(self, path: Path) -> None:
        entry = Entry(read(path), path, f"check {path.stem}")
        if entry.text("id") != path.stem:
            raise entry.fail(f"id {entry.text('id')!r} must be the file's name")
        if entry.get("disabled") == "true":
            self.checks.pop(path.stem, None)
            return
        yes = self.condition(entry.get("yes"), entry)
        texts = Entry(entry.get("text"), path, entry.what)
        check = Check(
            id=path.stem,
            label=entry.text("label"),
            kind=entry.one_of("kind", KINDS),
            order=int(entry.get("order", 1000)),
            question=entry.text("question"),
            yes=yes,
            no=self._optional("no", entry),
            evidence=entry.words("evidence"),
            text={answer: texts.text(answer) for answer in ("yes", "no", "unknown")},
            severity=cast(Severity, entry.one_of("severity", SEVERITIES, "info")),
            hold=entry.text("for", "1m"),
            rationale=entry.text("rationale"),
            source=entry.text("source"),
            unknown=entry.text("unknown"),
            doc=entry.text("doc", ""),
            finding=entry.text("finding", ""),
            path=str(path),
            settles=self._settles(entry),
        )
        entry.done()
        self.checks[check.id] = check

    def _settles(self, entry: Entry) -> dict[str, str]:
        raw = entry.get("settles")
        if raw is None:
            return {}
        node = Entry(raw, entry.path, entry.what)
        found = {topic: node.one_of(topic, values) for topic, values in TOPICS.items() if topic in node.raw}
        node.done()
        return found

    def _remedy(self, path: Path) -> None:
        entry = Entry(read(path), path, f"remedy {path.stem}")
        flags = Entry(entry.get("flags"), path, entry.what)
        done = tuple((str(d.get("fact")), str(d.get("is"))) for d in entry.get("done_if", []))
        rule = RemedyRule(
            entry.text("id"),
            entry.text("action"),
            {k: str(v) for k, v in flags.raw.items()},
            entry.text("effect"),
            entry.text("side_effect"),
            done,
        )
        entry.done()
        if rule.id != path.stem:
            raise entry.fail(f"id {rule.id!r} must be the file's name")
        self.remedies[rule.id] = rule

    def _verdicts(self, path: Path) -> None:
        self.verdicts = tuple(self._verdict(Entry(raw, path, "verdict")) for raw in _list(read(path), "verdicts", path))

    def _verdict(self, entry: Entry) -> VerdictRule:
        entry.what = f"verdict {entry.text('id')}"
        rule = VerdictRule(
            id=entry.text("id"),
            bottleneck=entry.text("bottleneck"),
            mode=entry.text("mode", "") or None,
            when=self.condition(entry.get("when"), entry, checks=True),
            headline=entry.text("headline"),
            because=entry.words("because"),
            severity=self._severities(entry),
            direct=entry.words("direct"),
            exclude=entry.words("exclude"),
            suspected=self._optional("suspected", entry, checks=True),
            remedies=entry.words("remedies"),
            not_remedies=self._not_remedies(entry),
            meaning=entry.text("meaning"),
        )
        entry.done()
        return rule

    def _severities(self, entry: Entry) -> tuple[tuple[Severity, Condition | None], ...]:
        out = []
        for raw in entry.get("severity", []):
            item = Entry(raw, entry.path, entry.what)
            out.append((cast(Severity, item.one_of("is", SEVERITIES)), self._optional("when", item, checks=True)))
            item.done()
        if not out or out[-1][1] is not None:
            raise entry.fail("`severity` must end with an entry without `when`")
        return tuple(out)

    def _not_remedies(self, entry: Entry) -> tuple[tuple[str, Condition | None], ...]:
        out = []
        for raw in entry.get("not_remedies", []):
            item = Entry(raw, entry.path, entry.what)
            out.append((item.text("text"), self._optional("when", item, checks=True)))
            item.done()
        return tuple(out)


def _list(raw: Any, key: str, path: Path) -> Iterable[Any]:
    entry = Entry(raw, path, key)
    value = entry.get(key)
    entry.done()
    if not isinstance(value, list):
        raise RuleError(str(path), f"needs `{key}`, a list", raw.get(LINE))
    return value


def load(folders: Sequence[Path]) -> Rulebook:
    """Reads the folders in order; what a later one defines replaces the same id of an earlier one."""
    reader = _Reader()
    for folder in folders:
        reader.numbers(folder)
    for folder in folders:
        reader.folder(folder)
    return Rulebook(
        thresholds=reader.thresholds,
        gates=reader.gates,
        checks=tuple(sorted(reader.checks.values(), key=lambda c: (c.order, c.id))),
        verdicts=reader.verdicts,
        remedies=reader.remedies,
        errors=tuple(reader.errors),
    )
