"""Server and runner of a trial on the virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from goodput.operator.observed import Failure, Runner, Server
from goodput.operator.virtual.results import Results
from goodput.runner.contract import OpenCell, Outcome, TrialPlan
from goodput.runner.errors import RunnerError, StoppedError
from goodput.runner.virtual.engine import Engine
from goodput.runner.virtual.trial import Measured

URL = "virtual:"  # nothing listens anywhere


@dataclass
class VirtualServer:
    """A simulated server. ``engine`` None: it did not start, ``failure`` says why."""

    since: float
    ready: float
    engine: Engine | None = None
    failure: Failure | None = None
    dropped: bool = False

    def look(self, now: float) -> Server | None:
        """The server at that time; None once it was told to go."""
        if self.dropped:
            return None
        if self.engine is None:
            return Server("ended", self.since, failure=self.failure)
        ready = self.ready if now >= self.ready else None
        return Server(
            state="starting" if ready is None else "ready",
            since=self.since,
            scheduled=self.since,
            running=self.since,
            ready=ready,
            url=URL,
        )


@dataclass
class VirtualRunner:
    """Takes the cells of a trial one by one, each when the clock has come to its end. One is kept at a time."""

    plan: TrialPlan
    since: float
    cells: Iterator[Measured]
    results: Results
    until: float  # the clock's time at which the next thing happens
    outcome: Outcome | None = None
    _next: Measured | None = None
    _valid: int = 0
    _open: list[OpenCell] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def look(self, now: float) -> Runner:
        """The runner at that time: cells that have ended by then are stored."""
        while self.outcome is None and now >= self.until:
            self._step()
        return Runner("running" if self.outcome is None else "finished", self.since, outcome=self.outcome)

    def stop(self) -> None:
        """End it now: the cell under way is lost."""
        if self.outcome is None:
            self._finish(StoppedError("the runner was told to stop"))

    def _step(self) -> None:
        """Store the cell that has ended; compute the next one."""
        if self._next is not None:
            self._store(self._next)
            self._next = None
        try:
            self._next = next(self.cells, None)
        except RunnerError as error:
            self._finish(error)
            return
        if self._next is None:
            self._finish(RunnerError())
        else:
            self.until = self._next.ended_seconds

    def _store(self, cell: Measured) -> None:
        document = cell.made.concluded.document
        self._seen.add(cell.planned.load.id)
        self.results.commit(cell.made)
        if document.outcome == "valid":
            self._valid += 1
        else:
            reason = document.reason or RunnerError.reason
            self._open.append(OpenCell(load=cell.planned.load.id, outcome="void", reason=reason))

    def _finish(self, error: RunnerError) -> None:
        left = [planned.load.id for planned in self.plan.loads if planned.load.id not in self._seen]
        cells = [*self._open, *(OpenCell(load=load, outcome=error.outcome, reason=error.reason) for load in left)]
        why = str(error) if left else ""
        self.outcome = Outcome(planned=len(self.plan.loads), valid=self._valid, open=tuple(cells), why=why)
