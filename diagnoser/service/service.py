"""The service as one object: starts, reloads and stops its parts, and evaluates round after round."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.errors import DiagnoserError
from diagnoser.model import Diagnosis
from diagnoser.rulebook.rules import Rulebook
from diagnoser.service.board import Board, Key, Transition, key_of
from diagnoser.service.config import Config
from diagnoser.service.engines import Engines
from diagnoser.service.evaluator import Rounds, judge
from diagnoser.service.history import History
from diagnoser.service.rules import rules_of
from diagnoser.service.states import ReloadResult, SourceState, TargetState
from diagnoser.service.stats import Stats

if TYPE_CHECKING:
    from diagnoser.service.alerting import Alerting
    from diagnoser.service.api.server import WebServer

log = logging.getLogger("diagnoser.service")
Listener = Callable[[tuple[Transition, ...]], None]
REMEMBER_SECONDS = 86400.0
"""After a longer stop, verdicts begin anew."""


class Service:
    """Everything that runs. `start` before anything else is asked.

    `load` reads the configuration, at the start and at every reload; it raises UsageError. Relative patterns of
    file_sd begin at `folder`. `path` is the file, for people.
    """

    history: History
    book: Rulebook
    alerting: Alerting | None = None
    web: WebServer | None = None

    def __init__(self, load: Callable[[], Config], folder: Path | None = None, path: Path | None = None) -> None:
        self.config = load()
        self.path, self._load = path, load
        self.board, self.stats = Board(), Stats()
        self.started_at = time.time()
        self.ready = False
        """Has evaluated at least once."""
        self.listeners: list[Listener] = []
        """Called on the event loop with the transitions of every round that had some, after they were stored."""
        self.last_reload: ReloadResult | None = None
        self.reloaded_at = self.started_at
        """When the configuration in use was taken, in unix seconds."""
        self.engines = Engines(folder or Path.cwd(), self.stats)
        self._tasks: list[asyncio.Task[None]] = []
        self._reloading = asyncio.Lock()

    async def start(self) -> None:
        """Opens the history, begins to poll, to evaluate, to alert and to answer. UsageError if something cannot."""
        config = self.config
        self.book = rules_of(config, strict=False)
        kept = config.history
        self.history = await History.open(kept.path, kept.retention, kept.max_size)
        if not self.history.healthy:
            log.error("history: %s", self.history.problem)
        self.board.remember(await self.history.last_transitions(self.started_at - REMEMBER_SECONDS))
        await self.engines.open(config)
        await self._open_alerting(config)
        await self._open_web()
        if config.web.port == 0 and self.alerting is not None:  # the address is known only now
            await self.alerting.use(config.notify, config.webhook, self.base_url(config))
        rounds = Rounds(self.evaluate_once, lambda: self.config.evaluate_every, self.stats)
        self._tasks.append(asyncio.create_task(rounds.run(), name="evaluate"))
        log.info("started", extra={"targets": len(self.targets()), "sources": len(self.sources())})

    async def _open_alerting(self, config: Config) -> None:
        from diagnoser.service.alerting import Alerting

        self.alerting = await Alerting.open(config.notify, config.webhook, self.history, self, self.base_url(config))
        self._tasks.append(asyncio.create_task(self.alerting.run(), name="alerting"))

    async def _open_web(self) -> None:
        from diagnoser.service.api.server import WebServer

        self.web = WebServer(self)
        await self.web.start()
        log.info("listening", extra={"address": self.web.address})

    def base_url(self, config: Config) -> str:
        """How links in messages begin."""
        scheme = "https" if config.web.tls else "http"
        address = self.web.address if self.web is not None else config.web.listen
        return str(config.notify.external_url or f"{scheme}://{address}").rstrip("/")

    async def stop(self, deadline: float) -> None:
        """Stops polling, drains the outbox for at most `deadline` seconds, closes the history."""
        began = time.monotonic()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.engines.close()
        if self.alerting is not None:
            await self.alerting.drain(max(0.0, deadline - (time.monotonic() - began)))
            await self.alerting.close()
        if self.web is not None:
            await self.web.stop(max(0.5, deadline - (time.monotonic() - began)))
        if hasattr(self, "history"):
            await self.history.close()
        log.info("stopped", extra={"seconds": round(time.monotonic() - began, 3)})

    # ---------------------------------------------------------------- rounds of evaluation

    async def evaluate_once(self, now: float) -> tuple[Transition, ...]:
        """One round: every target that has something new. Returns what changed."""
        began = time.perf_counter()
        windows = self.engines.windows(now, self.config.window)
        found, failed = await asyncio.to_thread(judge, windows, self.book)
        self.stats.evaluation_failures += len(failed)
        changes = self.board.put(found)
        self.board.drop(self._gone(found, failed))
        stored = await self.history.record(found, changes)
        self.stats.evaluated(time.perf_counter() - began, now)
        self.ready = self.ready or bool(found) or not self.targets()
        self._tell(stored)
        if self.alerting is not None:
            await self.alerting.saw(self.board.entries(), now)
        return stored

    def _gone(self, found: Sequence[Diagnosis], failed: Sequence[str]) -> list[Key]:
        """Ranks on the board that nothing was said of: their target left, or has them no more."""
        said, kept = {key_of(one) for one in found}, {*failed, *self.engines.waiting()}
        return [one.key for one in self.board.entries() if one.key not in said and one.key.target not in kept]

    def _tell(self, transitions: tuple[Transition, ...]) -> None:
        for one in transitions:
            log.info(
                "verdict changed: %s",
                one.headline,
                extra={"engine": one.key.id, "before": one.before, "after": one.after, "severity": one.severity},
            )
        for listener in self.listeners if transitions else ():
            try:
                listener(transitions)
            except Exception:
                log.exception("a listener failed")

    async def diagnose_at(self, key: Key, start: float, end: float) -> Diagnosis | None:
        """The verdict over that time, from the pages that are still kept or from the metrics server; else None."""
        try:
            windows = await self.engines.windows_at(key.target, start, end)
        except DiagnoserError as error:
            log.warning("no verdict of that time: %s", error, extra={"engine": key.id})
            return None
        windows = [window for window in windows if window.snapshots or window.failures]
        if not windows:
            return None
        found, _ = await asyncio.to_thread(judge, windows, self.book)
        return next((one for one in found if one.engine.rank == key.rank), None)

    # ---------------------------------------------------------------- reload

    async def reload(self) -> ReloadResult:
        """Reads the configuration again and takes it over as a whole; on any problem the old one stays."""
        async with self._reloading:
            self.stats.reloads += 1
            try:
                config = await asyncio.to_thread(self._load)
                notes = await self._take_over(config)
            except DiagnoserError as error:
                self.stats.reload_failures += 1
                self.last_reload = ReloadResult(False, str(error), time.time())
                log.error("configuration not reloaded, the old one stays: %s", error)
                return self.last_reload
            self.reloaded_at = time.time()
            self.last_reload = ReloadResult(True, "; ".join(notes), self.reloaded_at)
            log.info("configuration reloaded", extra={"targets": len(self.targets()), "notes": "; ".join(notes)})
            return self.last_reload

    async def _take_over(self, config: Config) -> list[str]:
        """All steps that can refuse come first; what they changed is changed back if a later one refuses."""
        book = await asyncio.to_thread(rules_of, config, True)
        old = self.config
        if self.alerting is not None:
            await self.alerting.use(config.notify, config.webhook, self.base_url(config))
        if self.web is not None:
            try:
                await self.web.reload(config.web)
            except DiagnoserError:
                if self.alerting is not None:
                    await self.alerting.use(old.notify, old.webhook, self.base_url(old))
                raise
        self.config, self.book = config, book
        await self.engines.use(config)
        return [] if config.history == old.history else ["history is only read at the start: restart to change it"]

    # ---------------------------------------------------------------- what others ask

    def targets(self) -> tuple[TargetState, ...]:
        """Every target, by name."""
        return self.engines.targets()

    def sources(self) -> tuple[SourceState, ...]:
        """Every source of addresses, in the order of the configuration."""
        return self.engines.sources()

    def labels(self, target: str) -> Mapping[str, str]:
        """Labels of a target, from discovery, configuration or the metrics server; {} if there are none."""
        return self.engines.labels(target)

    def labels_of(self, key: Key) -> Mapping[str, str]:
        """The same for an engine rank."""
        return self.engines.labels(key.target)
