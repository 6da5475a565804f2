"""How an alert's labels name engines: rules in the terms of Prometheus' relabel_config, then a comparison."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from diagnoser.service.inbound_settings import Relabel

T = TypeVar("T")
DEFAULTS: tuple[Relabel, ...] = (
    Relabel(source_labels=("instance",), regex="(.+)", target_label="target"),
    Relabel(source_labels=("model_name",), regex="(.+)", target_label="model"),
    Relabel(source_labels=("dp_rank",), regex="([0-9]+)", target_label="rank"),
    Relabel(source_labels=("engine",), regex="([0-9]+)", target_label="rank"),
)
"""Each is used only where the alert has no such label of its own, nor from the rules before."""
ADDRESSES = ("target", "pod", "host")
"""What names an engine's address, the surest first; after them come the target_labels of the user's own rules."""
KINDS = ("model", "family")
"""What names engines where the alert has no address."""
_REFERENCE = re.compile(r"\$\$|\$(?:\{(\w+)\}|(\w+))")


def relabelled(labels: Mapping[str, str], rules: Sequence[Relabel], defaults: bool) -> dict[str, str] | None:
    """The labels after the rules and the defaults; None where a rule drops the alert."""
    found = dict(labels)
    for rule in rules:
        kept = apply(found, rule)
        if kept is None:
            return None
        found = kept
    for rule in DEFAULTS if defaults else ():
        if rule.target_label not in found:
            found = apply(found, rule) or found
    return found


def apply(labels: Mapping[str, str], rule: Relabel) -> dict[str, str] | None:
    """One rule, as Prometheus applies it: anchored; a missing label is empty; an empty result removes the label."""
    source = rule.separator.join(labels.get(name, "") for name in rule.source_labels)
    match = re.fullmatch(rule.regex, source, re.DOTALL)
    if rule.action == "keep":
        return dict(labels) if match else None
    if rule.action == "drop":
        return None if match else dict(labels)
    if match is None:
        return dict(labels)
    value = expand(rule.replacement, match)
    found = {name: old for name, old in labels.items() if name != rule.target_label}
    return {**found, rule.target_label: value} if value else found


def expand(replacement: str, match: re.Match[str]) -> str:
    """$1, ${1}, ${name} of the match; a group that is not there is empty, $$ is a dollar."""

    def value(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        if name is None:
            return "$"
        groups = match.groupdict()
        if name.isdigit():
            return (match[int(name)] or "") if int(name) <= (match.re.groups) else ""
        return groups.get(name) or ""

    return _REFERENCE.sub(value, replacement)


Labels = Mapping[str, str]


def choose(labels: Labels, engines: Mapping[T, Labels], rules: Sequence[Relabel]) -> tuple[list[T], str]:
    """The engine ranks that the labels name, or why there are none.

    An address decides where the alert has one; else its model. `rank` narrows the choice.
    """
    own = [rule.target_label for rule in rules if rule.target_label not in (*ADDRESSES, *KINDS, "rank", "")]
    addresses = [name for name in dict.fromkeys((*ADDRESSES, *own)) if labels.get(name)]
    if addresses:
        found = next((hit for hit in (_equal(labels, engines, [name]) for name in addresses) if hit), [])
        asked = addresses
    else:
        asked = [name for name in KINDS if labels.get(name)]
        found = _equal(labels, engines, asked) if asked else []
    if not asked:
        return [], "its labels name no engine (no instance, pod or model among them)"
    if not found:
        return [], f"no engine that is watched has {_said(labels, asked)}"
    narrowed = [key for key in found if labels.get("rank", engines[key]["rank"]) == engines[key]["rank"]]
    return narrowed, "" if narrowed else f"the engine with {_said(labels, asked)} has no rank {labels['rank']}"


def _equal(labels: Labels, engines: Mapping[T, Labels], names: Sequence[str]) -> list[T]:
    return [key for key, known in engines.items() if all(known.get(name) == labels[name] for name in names)]


def _said(labels: Labels, names: Sequence[str]) -> str:
    return ", ".join(f"{name}={labels[name]}" for name in names)


def host_of(target: str) -> str:
    """The address without its port."""
    return target.rpartition(":")[0].strip("[]") or target
