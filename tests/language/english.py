"""All English that a reader in another language meets: texts of the rules, and sentences made in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from diagnoser.rulebook.rules import Rulebook

PACKAGE = Path(__file__).parents[2] / "diagnoser"
SENTENCES = ("ttft.py", "l2.py", "doubt.py", "whatif/changes.py", "whatif/load.py", "whatif/outcome.py")
"""Modules in which every text of two words is said to somebody."""
REASONS = (
    "engines", "model/engine.py", "tiers", "signals", "gates.py", "l2pages.py", "pipeline.py", "sources/http.py",
    "sources/base.py", "sources/recording.py", "promql/onerank.py", "promql/recorded.py",
)  # fmt: skip
"""Modules in which reasons stand between other texts."""
FLAG_WORDS = re.compile(r"(?<![\w.:/_-])[a-z]{2,}(?: [a-z]{2,})+(?![\w.:/=_-])|(?<![\w-])(?:or|in|on|with|the) ")


def of_rules(book: Rulebook) -> Iterator[tuple[str, str]]:
    """(text, where it is from)"""
    for check in book.checks:
        texts = (check.label, check.question, *check.text.values(), check.rationale, check.unknown)
        yield from ((text, f"rules/checks/{check.id}.yaml") for text in texts)
    for rule in book.verdicts:
        texts = (rule.headline, *rule.because, *(text for text, _ in rule.not_remedies), rule.meaning)
        yield from ((text, f"rules/verdicts.yaml, {rule.id}") for text in texts)
    for gate in book.gates:
        yield from ((text, f"rules/gates.yaml, {gate.id}") for text in (gate.title, gate.reason))
    for remedy in book.remedies.values():
        flags = [flag for flag in remedy.flags.values() if FLAG_WORDS.search(flag)]
        texts = (remedy.action, remedy.effect, remedy.side_effect, *flags)
        yield from ((text, f"rules/remedies/{remedy.id}.yaml") for text in texts)


def alternatives(text: str) -> list[str]:
    """Of "A || B" each; line breaks of the files do not count."""
    return [" ".join(one.split()) for one in text.split("||")]


def of_code() -> Iterator[tuple[str, str]]:
    """(template as it stands in an f-string, module)"""
    for name in SENTENCES:
        tree = ast.parse((PACKAGE / name).read_text())
        yield from ((text.strip(ENDS), name) for text in _texts(tree) if " " in text.strip())


def of_problems() -> Iterator[tuple[str, str]]:
    """(template, module) of what the service says is wrong with itself, its sources and its receivers."""
    for file in sorted((PACKAGE / "service").rglob("*.py")):
        where = str(file.relative_to(PACKAGE))
        for node in ast.walk(ast.parse(file.read_text())):
            if _is_problem(node):
                yield from ((text.strip(ENDS), where) for text in _texts(node) if WORDS.search(HOLES.sub("", text)))


def _is_problem(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(one, ast.Attribute) and one.attr.endswith("problem") for one in node.targets)
    if isinstance(node, ast.FunctionDef):
        return node.name in ("problems", "_problems", "reason", "_meaning")
    return isinstance(node, ast.Call) and _called(node) in ("DiscoveryError", "Outcome")


def _texts(node: ast.AST) -> Iterator[str]:
    """Strings and f-strings below, without docstrings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.JoinedStr):
            yield "".join(_piece(part) for part in child.values)
            for part in child.values:
                yield from _texts(part)
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            if not isinstance(node, ast.JoinedStr):
                yield child.value
        else:
            yield from _texts(child)


def _piece(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    spec = "" if part.format_spec is None else ":" + "".join(_piece(one) for one in part.format_spec.values)
    return f"{{{ast.unparse(part.value)}{spec}}}"


def of_reasons() -> Iterator[tuple[str, str]]:
    """(template, module) of every text of two words that is neither metadata nor an error of the command line."""
    for name in REASONS:
        path = PACKAGE / name
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            where = str(file.relative_to(PACKAGE))
            if "signals/promql" in where or where in VOCABULARY:
                continue
            tree = _Without().visit(ast.parse(file.read_text()))
            yield from ((text.strip(ENDS), where) for text in _texts(tree) if WORDS.search(HOLES.sub("", text)))


ENDS = " ,;:"
HOLES = re.compile(r"\{[^{}]*\}")
VOCABULARY = {"engines/base.py", "engines/vllm_facts.py", "tiers/base.py"}
"""Modules that explain names and tell of no engine."""
WORDS = re.compile(r"[A-Za-z]{2,} [a-z]{2,}|[a-z]{2,} [A-Za-z]{2,}|with --|^(?:answers |rejected: |is $)")
METADATA = {"Signal", "IntervalSignal", "Expr", "UsageError", "RecordingError", "_moved", "_tail_signal", "Fact"}
"""Calls whose texts explain a name, or stop a command."""


class _Without(ast.NodeTransformer):
    """Without metadata, but with what it says that PromQL cannot tell."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _called(node) not in METADATA:
            return self.generic_visit(node)
        return ast.List([one for one in ast.walk(node) if isinstance(one, ast.Call) and _called(one) == "Cannot"])


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
