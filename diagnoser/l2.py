"""From the answers of the checklist to the state of the host tier, and to whether more of it would help.

Checks say what their yes settles (`settles` in rules/checks/*.yaml); the first yes in the order of the checklist
counts, and its label and reason are the words. Nothing settled is unknown, with what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diagnoser.model import Answer, CheckResult, L2State, MoreL2, TierState
from diagnoser.rulebook.rules import Rulebook
from diagnoser.signals.table import Row

UNKNOWN_PHRASE = "L2 state not observable"
_STATE_NEEDS = ("l2_present", "l2_resident_ratio", "l2_resident_upper_ratio", "l2_stored_rate", "l2_loaded_rate")
_MORE_NEEDS = ("l2_present", "l2_never_evicted", "l2_hit_ratio", "l2_evict_reuse_gap_seconds", "decode_hold_ratio")
_SCOPES = {"node": "shared by the node's engines: ", "cluster": "shared by the cluster's engines: "}


@dataclass(frozen=True, slots=True)
class Settled:
    """The state in words, and would more help?"""

    state: L2State
    phrase: str
    reason: str
    missing: tuple[str, ...]
    more: MoreL2


def settle(checks: Sequence[CheckResult], row: Row, tier: TierState | None, book: Rulebook) -> Settled:
    """What the answers settle."""
    more = _more(checks, row, book)
    found = _first(checks, book, "l2")
    if found is not None:
        value, check = found
        return Settled(
            L2State(value), check.label, _SCOPES.get(tier.scope if tier else "", "") + check.reason, (), more
        )
    missing = _missing(row, _STATE_NEEDS)
    fill = next((check.reason for check in checks if check.id == "l2_idle"), "")
    reason = fill or (missing[0] if missing else "no check tells the state of the host tier")
    return Settled(L2State.UNKNOWN, UNKNOWN_PHRASE, reason, missing, more)


def _first(checks: Sequence[CheckResult], book: Rulebook, topic: str) -> tuple[str, CheckResult] | None:
    rules = {check.id: check.settles for check in book.checks}
    yes = (check for check in checks if check.answer is Answer.YES and topic in rules.get(check.id, {}))
    return next(((rules[check.id][topic], check) for check in yes), None)


def _more(checks: Sequence[CheckResult], row: Row, book: Rulebook) -> MoreL2:
    found = _first(checks, book, "more_l2")
    if found is not None:
        return MoreL2(Answer(found[0]), found[1].reason)
    missing = _missing(row, _MORE_NEEDS)
    said = "whether prefixes that left it, or L1, are wanted again, cannot be seen"
    if missing:
        said = f"whether prefixes that left it, or L1, are wanted again, cannot be seen ({missing[0]})"
    return MoreL2(Answer.UNKNOWN, said)


def _missing(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    reasons = (row[name].missing_reason for name in names if name in row)
    return tuple(dict.fromkeys(reason for reason in reasons if reason))
