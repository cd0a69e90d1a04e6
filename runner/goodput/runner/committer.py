"""Uploads between cells, and what to do while the store refuses: go on, then wait, then give up loudly."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from goodput.analysis.schema.planned import CellKey
from goodput.analysis.store import Store, StoreError, StoreReason
from goodput.runner.commit import stored_cell, upload
from goodput.runner.contract import TrialPlan
from goodput.runner.errors import StoreRefusedError
from goodput.runner.spool import Committed, TrialSpool
from goodput.runner.status import Board
from goodput.runner.stop import Stop

BACKOFF_SECONDS = (1.0, 2.0, 4.0, 5.0)  # the last one repeats
FIRST_LISTING_SECONDS = 5.0  # how long a first attempt asks a store that refuses: it has no results yet
LISTING_SECONDS = 60.0  # the same for a later attempt, which must know what there is
STOPPING_SECONDS = 60.0  # how long uploads may take after a SIGTERM; the pod's grace is 120 s
_log = logging.getLogger(__name__)


class Committer:
    """All traffic of one trial with the store.

    Args:
        connect: opens the sweep's folder; short retries of its own, so that a refusal is seen soon.
        spool: the trial's.
        plan: the trial's.
        board: where the latest refusal is shown.
    """

    def __init__(self, connect: Callable[[], Store], spool: TrialSpool, plan: TrialPlan, board: Board) -> None:
        self._connect = connect
        self._store: Store | None = None
        self._spool = spool
        self._plan = plan
        self._board = board
        self.last_reason: StoreReason = "UploadDenied"

    def known(self, stop: Stop) -> Mapping[str, Committed]:
        """Load id → what spool or store have of it: cells that must not be measured again.

        While the store refuses it is asked again for a while. After that the first attempt goes on (there
        cannot be results), a later one must not.

        Raises:
            StoreRefusedError: a later attempt, and the store refuses.
            StoppedError: asked to stop meanwhile.
        """
        settled = {
            load_id: committed for load_id in self._loads() if (committed := self._spool.cell(load_id).committed)
        }
        first = self._plan.attempt == 1
        deadline = time.monotonic() + (FIRST_LISTING_SECONDS if first else LISTING_SECONDS)
        for pause in _backoff():
            try:
                return settled | self._stored(set(self._loads()) - set(settled))
            except StoreError as error:
                self._refused(error)
                if time.monotonic() + pause > deadline:
                    if first:
                        return settled
                    raise StoreRefusedError(error.reason, str(error)) from error
            stop.pause(pause)
        raise AssertionError("the back-off has no end")

    def flush(self) -> bool:
        """Upload what lies ready, once. True when nothing is left; a refusal is shown and left for later."""
        for load_id in self.pending():
            cell = self._spool.cell(load_id)
            commit = cell.commit
            if commit is None:
                continue
            try:
                cell.settle(upload(self._open(), cell, commit))
            except StoreError as error:
                self._refused(error)
                return False
        self._board.update(upload_error=None)
        return True

    def hold(self, seconds: float, stop: Stop, enough: Callable[[], bool] = lambda: False) -> bool:
        """Upload until nothing is left, ``enough`` says so, or ``seconds`` have passed; a signal shortens it.

        Returns whether nothing is left.
        """
        deadline = time.monotonic() + seconds
        stopping: float | None = None
        for pause in _backoff():
            if self.flush():
                return True
            now = time.monotonic()
            if stop.signalled and stopping is None:
                stopping = now + STOPPING_SECONDS
            if enough() or now + pause > min(deadline, stopping or deadline):
                return False
            stop.rest(pause)
        raise AssertionError("the back-off has no end")

    def pending(self) -> list[str]:
        """Loads whose records wait for the store."""
        cells = ((load_id, self._spool.cell(load_id)) for load_id in self._loads())
        return [load_id for load_id, cell in cells if cell.commit is not None and cell.committed is None]

    def _stored(self, load_ids: Iterable[str]) -> dict[str, Committed]:
        found: dict[str, Committed] = {}
        for load_id in load_ids:
            key = CellKey(config=self._plan.config.id, load=load_id, block=self._plan.block)
            stored = stored_cell(self._open(), key, self._plan.attempt)
            if stored is not None:
                found[load_id] = stored
        self._board.update(upload_error=None)
        return found

    def _loads(self) -> list[str]:
        return [planned.load.id for planned in self._plan.loads]

    def _open(self) -> Store:
        if self._store is None:
            self._store = self._connect()
        return self._store

    def _refused(self, error: StoreError) -> None:
        self.last_reason = error.reason
        self._board.upload_failed(f"{error.reason}: {error}")
        _log.warning("the store refuses, retrying: %s", error)


def _backoff() -> Iterable[float]:
    yield from BACKOFF_SECONDS
    while True:
        yield BACKOFF_SECONDS[-1]
