"""The service as one object: starts, reloads and stops its parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagnoser.model import Diagnosis
from diagnoser.rulebook.rules import Rulebook
from diagnoser.service.board import Board, Key
from diagnoser.service.config import Config
from diagnoser.service.history import History
from diagnoser.service.states import ReloadResult, SourceState, TargetState
from diagnoser.service.stats import Stats

if TYPE_CHECKING:
    from collections.abc import Mapping


class Service:
    """Everything that runs. `start` before anything else is asked."""

    config: Config
    board: Board
    history: History
    book: Rulebook
    stats: Stats
    started_at: float
    ready: bool
    """Has evaluated at least once."""
    last_reload: ReloadResult
    outbox: Any
    webhook: Any

    def __init__(self, config: Config, path: Path | None = None) -> None:
        self.config, self.path = config, path

    async def start(self) -> None:
        """Opens the history, begins to poll and to evaluate."""
        raise NotImplementedError

    async def stop(self, deadline: float) -> None:
        """Stops polling, drains the outbox for at most `deadline` seconds, closes the history."""
        raise NotImplementedError

    async def reload(self) -> ReloadResult:
        """Reads the configuration file again; on any problem the old one stays."""
        raise NotImplementedError

    async def diagnose_at(self, key: Key, start: float, end: float) -> Diagnosis | None:
        """The verdict over that time, from the pages that are still kept; None if there are none of it."""
        raise NotImplementedError

    def targets(self) -> tuple[TargetState, ...]:
        """Every target, by name."""
        raise NotImplementedError

    def sources(self) -> tuple[SourceState, ...]:
        """Every source of addresses, in the order of the configuration."""
        raise NotImplementedError

    def labels(self, target: str) -> Mapping[str, str]:
        """Labels of a target, from discovery and configuration."""
        raise NotImplementedError
