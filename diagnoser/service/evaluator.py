"""Windows to verdicts, round after round. A window that cannot be judged costs its own verdict only."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from diagnoser.model import Diagnosis, Window
from diagnoser.pipeline import diagnose
from diagnoser.rulebook.rules import Rulebook

log = logging.getLogger("diagnoser.evaluator")


def judge(windows: Sequence[Window], book: Rulebook) -> tuple[list[Diagnosis], list[str]]:
    """A diagnosis a window, and the names of the targets that gave none because of a fault of ours.

    All together, so that ranks and replicas are compared; if that fails, target by target.
    """
    try:
        return list(diagnose(windows, book)), []
    except Exception:
        log.exception("evaluation failed, going target by target")
    found: list[Diagnosis] = []
    failed = []
    for name in dict.fromkeys(window.engine.target for window in windows):
        try:
            found += diagnose([window for window in windows if window.engine.target == name], book)
        except Exception:
            failed.append(name)
    return found, failed
