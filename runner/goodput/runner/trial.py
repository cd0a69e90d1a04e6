"""One trial: verify, warm, measure each load in order, commit, and say what is left open."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from goodput.analysis.store import Store, open_store
from goodput.runner.cell import measure
from goodput.runner.committer import Committer
from goodput.runner.conclude import Concluded, conclude
from goodput.runner.contract import OpenCell, Outcome, PlannedLoad, TrialPlan
from goodput.runner.errors import RunnerError, ServerRestartedError, SpoolFullError, StoreRefusedError
from goodput.runner.load.errors import LoadError
from goodput.runner.load.run import CellRecords, recover
from goodput.runner.prepare import Surroundings, prepare
from goodput.runner.room import cell_bytes, enough_room
from goodput.runner.server import Server
from goodput.runner.spool import CellSpool, Committed, Memory, TrialSpool
from goodput.runner.status import Board
from goodput.runner.stop import Stop

STORE_RETRY_SECONDS = 3.0
WHY_CHARACTERS = 600
_log = logging.getLogger(__name__)


class Trial:
    """Runs one trial plan to its outcome.

    Args:
        plan: ``trial.json``.
        spool_root: folder that outlives a restart of the container.
        board: live status.
        stop: set by SIGTERM; its deadline is the trial's.
        spool_limit_bytes: how much may wait for a store that refuses; None: what the disk has.
        processes: of the load client; None: as many as each load needs.
        follow: live latencies while a window runs; None: where there is a core for them.
    """

    def __init__(
        self,
        plan: TrialPlan,
        spool_root: Path,
        board: Board,
        stop: Stop,
        *,
        spool_limit_bytes: int | None = None,
        processes: int | None = None,
        follow: bool | None = None,
    ) -> None:
        self._plan = plan
        self._board = board
        self._stop = stop
        self._spool = TrialSpool(spool_root, plan)
        self._spool_limit_bytes = spool_limit_bytes
        self._processes, self._follow = processes, follow
        self._committer = Committer(partial(connect, plan), self._spool, plan, board)
        self._settled: dict[str, Committed] = {}

    def run(self) -> Outcome:
        """Measure what can be measured and commit it. What server or store do ends up in the outcome."""
        memory = self._spool.memory
        began = time.time() if memory is None else memory.began_unix
        self._stop.deadline = time.monotonic() + self._plan.deadline_seconds - (time.time() - began)
        aborted: RunnerError | None = None
        try:
            if memory is not None:
                self._finish_earlier(memory)
            self._settled = dict(self._committer.known(self._stop))
            self._show_done()
            if self._left():
                self._measure_all(memory, began)
        except RunnerError as error:
            _log.warning("the trial ends early: %s: %s", error.reason, error)
            aborted = error
        self._board.update(step="uploading", load=None, measuring=False)
        self._committer.hold(self._plan.upload_hold_seconds, self._stop)
        outcome = self._outcome(aborted)
        self._board.update(step="done", done=outcome.valid)
        return outcome

    def _finish_earlier(self, memory: Memory) -> None:
        """Commit what a runner before this one finished; what it did not finish is void."""
        for planned in self._plan.loads:
            cell = self._spool.cell(planned.load.id)
            if cell.began is None or cell.commit is not None or cell.committed is not None:
                continue
            self._conclude(planned, memory, _recovered(cell))
        self._committer.flush()

    def _left(self) -> list[PlannedLoad]:
        """Loads that are neither settled nor begun, in the plan's order."""
        return [
            planned
            for planned in self._plan.loads
            if planned.load.id not in self._settled and self._spool.cell(planned.load.id).began is None
        ]

    def _measure_all(self, memory: Memory | None, began: float) -> None:
        server = Server(self._plan.server, model=self._plan.served_model)
        bench, memory = prepare(Surroundings(self._plan, server, self._spool, self._board, self._stop), memory, began)
        bench = replace(bench, processes=self._processes, follow=self._follow)
        for planned in self._left():
            self._stop.check()
            self._make_room(planned)
            records, fatal = measure(bench, planned, self._spool.cell(planned.load.id))
            concluded = self._conclude(planned, memory, records)
            self._committer.flush()
            self._show_done()
            if fatal is None and concluded.document.reason == ServerRestartedError.reason:
                fatal = ServerRestartedError(concluded.document.message or "")
            if fatal is not None:
                raise fatal

    def _conclude(self, planned: PlannedLoad, memory: Memory, records: CellRecords | None) -> Concluded:
        concluded = conclude(self._plan, planned, memory, self._spool.cell(planned.load.id), records)
        document = concluded.document
        self._board.metrics.end(document, concluded.outcomes, concluded.summary)
        _log.info(
            "cell %s: %s%s", document.load.label, document.outcome, f" ({document.reason})" if document.reason else ""
        )
        return concluded

    def _make_room(self, planned: PlannedLoad) -> None:
        """Wait for the store where the spool is too full for the next cell."""

        def fits() -> bool:
            return enough_room(self._spool, planned, self._spool_limit_bytes)

        if fits():
            return
        if self._committer.pending():
            self._committer.hold(self._plan.upload_hold_seconds, self._stop, enough=lambda: self._due(fits))
            self._stop.check()
        if not fits():
            if self._committer.pending():
                raise StoreRefusedError(
                    self._committer.last_reason, "the spool is full of cells that wait for the store"
                )
            raise SpoolFullError(f"{planned.load.label} may need {cell_bytes(planned)} bytes of spool")

    def _due(self, fits: Callable[[], bool]) -> bool:
        return fits() or self._stop.reason is not None

    def _state(self, planned: PlannedLoad) -> Committed | None:
        return self._spool.cell(planned.load.id).committed or self._settled.get(planned.load.id)

    def _show_done(self) -> None:
        states = [self._state(planned) for planned in self._plan.loads]
        self._board.update(done=sum(1 for state in states if state is not None and state.outcome == "valid"))

    def _outcome(self, aborted: RunnerError | None) -> Outcome:
        valid = lost = 0
        still_open: list[OpenCell] = []
        for planned in self._plan.loads:
            load_id = planned.load.id
            state, waiting = self._state(planned), self._spool.cell(load_id).commit
            if state is not None and state.outcome == "valid":
                valid += 1
            elif state is not None:
                still_open.append(OpenCell(load=load_id, outcome="void", reason=state.reason or RunnerError.reason))
            elif waiting is not None:
                lost += waiting.outcome == "valid"
                still_open.append(OpenCell(load=load_id, outcome="void", reason=self._committer.last_reason))
            else:
                error = aborted or RunnerError()
                still_open.append(OpenCell(load=load_id, outcome=error.outcome, reason=error.reason))
        why = "" if aborted is None else str(aborted)[:WHY_CHARACTERS]
        return Outcome(planned=len(self._plan.loads), valid=valid, open=tuple(still_open), lost=lost, why=why)


def refused(plan: TrialPlan, error: RunnerError) -> Outcome:
    """The outcome of a trial that could not even begin."""
    cells = (OpenCell(load=entry.load.id, outcome=error.outcome, reason=error.reason) for entry in plan.loads)
    why = str(error)[:WHY_CHARACTERS]
    return Outcome(planned=len(plan.loads), valid=0, open=tuple(cells), why=why)


def connect(plan: TrialPlan) -> Store:
    """The sweep's folder in the object store. Raises `StoreError`."""
    target = plan.results
    return open_store(
        f"{target.uri.rstrip('/')}/sweep={plan.sweep}",
        endpoint=target.endpoint,
        region=target.region,
        retry_seconds=STORE_RETRY_SECONDS,
    )


def _recovered(cell: CellSpool) -> CellRecords | None:
    try:
        return recover(cell.load) if cell.load.exists() else None
    except LoadError as error:
        _log.warning("records of %s cannot be recovered: %s", cell.folder.name, error)
        return None
