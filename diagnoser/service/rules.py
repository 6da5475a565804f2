"""The rules that the service uses: the shipped ones, and folders of one's own."""

from __future__ import annotations

import logging

from diagnoser.data import data_dir
from diagnoser.errors import UsageError
from diagnoser.pipeline import rule_problems
from diagnoser.rulebook.load import load
from diagnoser.rulebook.rules import Rulebook
from diagnoser.service.config_models import Config

log = logging.getLogger("diagnoser.rules")


def rules_of(config: Config, strict: bool) -> Rulebook:
    """The rulebook. A wrong rule is left out and told; with `strict` it is a UsageError, as a missing folder is."""
    missing = [str(folder) for folder in config.rules if not folder.is_dir()]
    if missing:
        raise UsageError(f"rules: {missing[0]}: no such folder; it may hold checks/, remedies/, thresholds.yaml, ...")
    book = load([data_dir("rules"), *config.rules])
    problems = rule_problems(book) if config.rules else book.errors
    if problems and strict:
        raise UsageError("\n".join(map(str, problems)))
    for problem in problems:
        log.error("%s (skipped, the other rules stand)", problem)
    return book
